package isa

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryMachineRunsGeneric(t *testing.T) {
	tiers := Tiers()
	if tiers[len(tiers)-1] != Generic {
		t.Fatalf("tiers %v do not end in generic", tiers)
	}
}

// A tier that was asked for is used or refused; there is no third outcome.
func TestForcedTierIsHonouredOrAnError(t *testing.T) {
	for tier := Generic; tier <= AMX; tier++ {
		t.Setenv("ANNEAL_CPU", tier.String())
		got, err := Choose()
		switch runs := slices.Contains(Tiers(), tier); {
		case runs && (got != tier || err != nil):
			t.Errorf("ANNEAL_CPU=%v chose %v, %v", tier, got, err)
		case !runs && (err == nil || !strings.Contains(err.Error(), "lacks")):
			t.Errorf("ANNEAL_CPU=%v, which this CPU lacks, chose %v, %v", tier, got, err)
		}
	}
}

func TestUnforcedChoiceIsATierThatRuns(t *testing.T) {
	t.Setenv("ANNEAL_CPU", "")
	got, err := Choose()
	if err != nil || !slices.Contains(Tiers(), got) {
		t.Fatalf("chose %v, %v; this CPU runs %v", got, err, Tiers())
	}
}

func TestUnknownTierIsAnErrorThatListsTheTiers(t *testing.T) {
	t.Setenv("ANNEAL_CPU", "avx1024")
	if _, err := Choose(); err == nil || !strings.Contains(err.Error(), "generic") {
		t.Fatalf("error %v does not list the tiers", err)
	}
}
