package serve

import (
	"os"
	"testing"

	"anneal/device"
	"anneal/device/cpu"
	_ "anneal/internal/torture" // its flags: go test gives them to every package
)

var directory string // of the tests' run

func TestMain(m *testing.M) {
	var err error
	if directory, err = os.MkdirTemp("", "serve"); err != nil {
		panic(err)
	}
	os.Mkdir(directory+"/data", 0o777)
	code := m.Run()
	os.RemoveAll(directory)
	os.Exit(code)
}

func mustCPU(t testing.TB) device.Device {
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dev.Close)
	return dev
}
