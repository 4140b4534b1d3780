package devicetest

import (
	"testing"

	"anneal/device"
	"anneal/device/conformance"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, func(t *testing.T) device.Device {
		d, err := New(2)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		return d
	})
}
