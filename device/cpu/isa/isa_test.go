package isa

import (
	"strings"
	"testing"
)

func TestEveryMachineRunsGeneric(t *testing.T) {
	tiers := Tiers()
	if tiers[len(tiers)-1] != Generic {
		t.Fatalf("tiers %v do not end in generic", tiers)
	}
}

func TestForcedTierIsHonoured(t *testing.T) {
	for _, tier := range Tiers() {
		t.Setenv("ANNEAL_CPU", tier.String())
		if got, err := Choose(); got != tier || err != nil {
			t.Errorf("ANNEAL_CPU=%v chose %v, %v", tier, got, err)
		}
	}
}

func TestUnknownTierIsAnErrorThatListsTheTiers(t *testing.T) {
	t.Setenv("ANNEAL_CPU", "avx1024")
	if _, err := Choose(); err == nil || !strings.Contains(err.Error(), "generic") {
		t.Fatalf("error %v does not list the tiers", err)
	}
}
