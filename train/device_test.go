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
