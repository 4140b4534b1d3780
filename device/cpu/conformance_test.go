package cpu

import (
	"testing"

	"anneal/device"
	"anneal/device/conformance"
	"anneal/internal/isa"
)

func TestEveryTierConforms(t *testing.T) {
	for _, tier := range isa.Tiers() {
		t.Run(tier.String(), func(t *testing.T) {
			conformance.Run(t, func(t *testing.T) device.Device {
				d := NewTier(tier, 2)
				t.Cleanup(d.Close)
				return d
			})
		})
	}
}
