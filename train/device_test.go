package train

import (
	"errors"
	"testing"

	"anneal/config"
)

func TestWithoutACardTheErrorIsTheDevices(t *testing.T) {
	var failed *DeviceError
	if _, err := OpenDevice(&config.Config{Device: "cuda"}, "", 0); err != nil && !errors.As(err, &failed) {
		t.Errorf("where there is no card the error is %T", err)
	}
}

func TestWithoutItsKernelsNoDeviceIsReturned(t *testing.T) {
	t.Setenv("ANNEAL_CPU", "bogus")
	if dev, err := OpenDevice(&config.Config{Device: "cpu"}, "", 1); dev != nil || err == nil {
		t.Errorf("device %v, error %v: callers close every device that is not nil", dev, err)
	}
}
