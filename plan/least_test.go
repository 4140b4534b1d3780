package plan

import (
	"strings"
	"testing"

	"anneal/config"
	"anneal/train"
)

func planned(t *testing.T, recipe string, set ...string) *config.Config {
	t.Helper()
	s := config.Sources{Recipe: recipe, Planning: true, Overrides: set}
	cfg, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// The least number of devices is that of plans: the state fits on so many and on no fewer, and with activations the
// whole run does.
func TestTheLeastNumberOfDevicesIsThatOfPlans(t *testing.T) {
	for _, c := range []struct {
		set   []string
		bytes int64
	}{
		{nil, 24e9}, {nil, 64e9}, {[]string{"optimizer.name=muon"}, 24e9}, {[]string{"parallel.pipeline=2"}, 24e9},
	} {
		cfg := planned(t, "llama2-7b", append(c.set, "model.vocab=32000")...)
		l := leastOf(cfg, machine{}, c.bytes)
		if l.State < 2 || l.All < l.State {
			t.Errorf("%v: %+v", c.set, l)
			continue
		}
		cfg.Parallel.Zero, cfg.Parallel.Tensor = 3, l.Tensor
		unit := cfg.Parallel.Shared()
		if _, all, err := largest(cfg, machine{}, l.All); err != nil || all > c.bytes {
			t.Errorf("%v: %d ranks need %d bytes each, %v", c.set, l.All, all, err)
		}
		if l.All > unit {
			if _, all, err := largest(cfg, machine{}, l.All-unit); err == nil && all <= c.bytes {
				t.Errorf("%v: %d ranks are enough, too", c.set, l.All-unit)
			}
		}
		cfg.Parallel.Ranks = l.All
		p, err := For(cfg, machine{free: c.bytes})
		if err != nil || p.Ranks.Bytes[p.Ranks.Fullest] > c.bytes {
			t.Errorf("%v: the plan of %d ranks does not fit: %v", c.set, l.All, err)
		}
	}
}

// What offloading would need is compared with the memory that was given, not with this machine's.
func TestOffloadingIsForTheGivenMemory(t *testing.T) {
	cfg := planned(t, "standard-1.1b", "model.vocab=32000", "train.micro_batch=1")
	f, err := Outline(cfg)
	if err != nil {
		t.Fatal(err)
	}
	state := f.Memory.Bytes(train.OptimizerState)
	for _, c := range []struct {
		memory int64
		enough bool
	}{{f.Bytes - state/2, true}, {f.Bytes - 2*state, false}} {
		f.Offloading = 1
		f.Within(cfg, c.memory)
		if f.Fits || (f.Offloading > 0) != c.enough || f.Offloading > c.memory {
			t.Errorf("with %d bytes: fits %v, offloading needs %d", c.memory, f.Fits, f.Offloading)
		}
	}
}

// The sentence has what is needed, what there is and what would be enough.
func TestTheVerdictSaysWhatWouldBeEnough(t *testing.T) {
	for _, c := range []struct {
		recipe string
		memory int64
		set    string
		want   string
	}{
		{"llama2-70b", 0, "", "14 × 80 GB are the least for the state with zero=3; 16 leave room for activations"},
		{"llama2-7b", 0, "", "2 × 80 GB are the least, with zero=3"},
		{"llama2-7b", 24e9, "", ", a device has 24 GB: "},
		{"llama2-7b", 1e9, "train.micro_batch=8", "but no number leaves room for activations: a smaller"},
		{"llama2-7b", 1e6, "", "no number of devices of "},
	} {
		cfg := planned(t, c.recipe, strings.Fields(c.set+" model.vocab=32000")...)
		needs := Estimate{{Name: train.OptimizerState}, {Bytes: 1 << 40}}
		f := &Foresight{Memory: needs, Bytes: needs.Total(), Available: 1 << 30}
		if c.memory > 0 {
			f.Within(cfg, c.memory)
		} else {
			f.Least = leastCards(cfg)
		}
		if got := f.Verdict(); !strings.HasPrefix(got, "does not fit: needs 1,024.0 GiB (1099 GB), ") ||
			!strings.Contains(got, c.want) {
			t.Errorf("%s, %d bytes: %q does not hold %q", c.recipe, c.memory, got, c.want)
		}
	}
}
