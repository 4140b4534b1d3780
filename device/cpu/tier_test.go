package cpu_test

import (
	"testing"

	"anneal/device/cpu"
)

// A program outside of this module can name a tier, list those of the machine, and open a device of one.
func TestATierCanBeNamed(t *testing.T) {
	tiers := cpu.Tiers()
	var tier cpu.Tier = tiers[len(tiers)-1]
	if tier != cpu.Generic || tier.String() != "generic" {
		t.Errorf("the last tier of this machine is %v", tier)
	}
	d := cpu.NewTier(tier, 1)
	defer d.Close()
	if d.Tier() != tier {
		t.Errorf("a device of the tier %v has %v", tier, d.Tier())
	}
}
