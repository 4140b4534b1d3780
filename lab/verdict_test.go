package lab

import (
	"math"
	"strings"
	"testing"

	"anneal/run"
	"anneal/train"
)

// runsOf are runs with losses, NaN for one that diverged.
func runsOf(bits ...float64) (list []Compared) {
	for _, b := range bits {
		list = append(list, Compared{
			Result: &run.Result{Evaluation: train.Evaluation{ValBitsPerByte: b}}, Diverged: math.IsNaN(b),
		})
	}
	return list
}

// Differences are of runs with the same seed: a small one that is always there counts, a larger one that is not does
// not, and of twenty variants without effect none is said to have one.
func TestVerdictsArePaired(t *testing.T) {
	list := []Ablated{
		{Name: baseline, Runs: runsOf(2, 2.2, 1.9)},
		{Name: "a little better every time", Runs: runsOf(1.98, 2.177, 1.882)},
		{Name: "sometimes better", Runs: runsOf(1.9, 2.3, 1.88)},
		{Name: "diverges", Runs: runsOf(1.9, math.NaN(), 1.9)},
	}
	Compare(list)
	for i, want := range []string{"", "better by 1.0 ± 0.1 %", "no difference seen: ",
		"1 of 3 runs diverged; the others: no difference seen: -2.5 "} {
		if got := list[i].Verdict(); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", list[i].Name, got, want)
		}
	}
	fine := []Ablated{{Name: baseline, Runs: runsOf(2, 2, 2)}, {Runs: runsOf(1.9990, 1.9991, 1.9989)}}
	Compare(fine)
	if got := fine[1].Verdict(); got != "better by 0.05 ± 0.01 %" {
		t.Error(got)
	}
	lost := []Ablated{{Name: baseline, Runs: runsOf(math.NaN(), math.NaN())}, {Runs: runsOf(2, 2)}}
	Compare(lost)
	if got := lost[1].Verdict(); !strings.Contains(got, "the first variant diverged") {
		t.Error(got)
	}
	one := []Ablated{{Runs: runsOf(2)}, {Runs: runsOf(1.9)}}
	Compare(one)
	if got := one[1].Verdict(); got != "better by 5.0 %, of one seed: it may be chance" {
		t.Error(got)
	}
	two := []Ablated{
		{Name: baseline, Runs: runsOf(2, 2, 2)}, {Runs: runsOf(2.04, 2.06, 2.08)}, {Runs: runsOf(2, 2.01, 1.99)},
	}
	if Compare(two[:2]); !strings.HasPrefix(two[1].Verdict(), "worse by 3.0 ± 2.5 %") {
		t.Error(two[1].Verdict())
	}
	if Compare(two); !strings.HasPrefix(two[1].Verdict(), "perhaps worse by 3.0 ± 2.5 %") {
		t.Error(two[1].Verdict())
	}
	many := []Ablated{{Runs: runsOf(2, 2, 2)}}
	for i := range 20 {
		d := 0.001 * float64(i-10)
		many = append(many, Ablated{Runs: runsOf(2+d, 2.01-d, 1.99+d/2)})
	}
	Compare(many)
	for i := range many[1:] {
		if got := many[1+i].Verdict(); !strings.HasPrefix(got, "no difference") {
			t.Errorf("variant %d: %s", i, got)
		}
	}
}
