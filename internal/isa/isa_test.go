package isa

import (
	"runtime"
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

// A tier in ANNEAL_CPU is either used or refused.
func TestForcedTierIsHonouredOrAnError(t *testing.T) {
	for tier := Generic; tier <= last; tier++ {
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

// Enables allows exactly the tiers that the machine supports, up to the tier in ANNEAL_CPU.
func TestEnablesStopsAtTheForcedTier(t *testing.T) {
	for forced := Generic; forced <= last; forced++ {
		t.Setenv("ANNEAL_CPU", forced.String())
		for tier := Generic; tier <= last; tier++ {
			if got, want := Enables(tier), tier <= forced && slices.Contains(Tiers(), tier); got != want {
				t.Errorf("ANNEAL_CPU=%v enables %v: %v, want %v", forced, tier, got, want)
			}
		}
	}
	t.Setenv("ANNEAL_CPU", "bogus")
	if Enables(Generic) {
		t.Error("an unknown tier enables kernels")
	}
	t.Setenv("ANNEAL_CPU", "")
	for tier := Generic; tier <= last; tier++ {
		if got, want := Enables(tier), slices.Contains(Tiers(), tier); got != want {
			t.Errorf("without ANNEAL_CPU, %v is enabled: %v, want %v", tier, got, want)
		}
	}
}

// Require panics for an unsupported tier, before an instruction of it ends the process with a signal.
func TestRequireRefusesWhatTheMachineLacks(t *testing.T) {
	for tier := Generic; tier <= last; tier++ {
		refused := func() (refused bool) {
			defer func() { refused = recover() != nil }()
			Require(tier)
			return false
		}()
		if refused == slices.Contains(Tiers(), tier) {
			t.Errorf("%v: refused %v, but this CPU runs %v", tier, refused, Tiers())
		}
	}
}

// A tier of another architecture never runs.
func TestTiersAreOfThisArchitecture(t *testing.T) {
	for _, tier := range Tiers() {
		if arm := tier >= NEON; tier != Generic && arm != (runtime.GOARCH == "arm64") {
			t.Errorf("%v runs on %s", tier, runtime.GOARCH)
		}
	}
}
