package cpu

import (
	"testing"

	"anneal/device"
	"anneal/device/conformance"
	"anneal/internal/isa"
	"anneal/internal/torture"
)

func TestEveryTierConforms(t *testing.T) {
	for i, tier := range isa.Tiers() {
		t.Run(tier.String(), func(t *testing.T) {
			if i > 0 && tier != isa.Generic {
				torture.Long(t)
			}
			conformance.Run(t, func(t *testing.T) device.Device {
				d := NewTier(tier, 2)
				t.Cleanup(d.Close)
				return d
			})
		})
	}
}
