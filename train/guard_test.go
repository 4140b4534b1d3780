package train

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"anneal/train/config"

	"pgregory.net/rapid"
)

// A guard saved and restored anywhere decides like one that never was, and its counts are those of the decisions.
func TestGuardSurvivesACheckpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := config.Guard{MaxSkips: 5, SpikeZ: rapid.SampledFrom([]float64{0, 2, 4}).Draw(t, "spike z")}
		loss := rapid.OneOf(rapid.Float64Range(2, 2.1), rapid.SampledFrom([]float64{2.05, 9, math.NaN(), math.Inf(1)}))
		losses := rapid.SliceOfN(loss, 1, 200).Draw(t, "losses")
		cut := rapid.IntRange(0, len(losses)).Draw(t, "cut")
		whole, parted := newGuard(limits), newGuard(limits)
		skipped, nonFinite, row, rowNonFinite := 0, 0, 0, 0
		for i, l := range losses {
			if i == cut {
				data, err := json.Marshal(parted)
				if err != nil {
					t.Fatal(err)
				}
				var saved guard
				if err := json.Unmarshal(data, &saved); err != nil {
					t.Fatal(err)
				}
				parted = newGuard(limits)
				parted.restore(saved)
			}
			a, b := whole.accept(l, 1), parted.accept(l, 1)
			if a != b || whole.exhausted() != parted.exhausted() {
				t.Fatalf("loss %d, %v: accepted %v, after a checkpoint %v", i, l, a, b)
			}
			finite := l-l == 0
			if !finite && a {
				t.Fatalf("loss %d, %v was accepted", i, l)
			}
			if a {
				row, rowNonFinite = 0, 0
				continue
			}
			skipped++
			row++
			if !finite {
				nonFinite++
				rowNonFinite++
			}
		}
		if whole.Skipped != skipped || whole.NonFinite != nonFinite || whole.Row != row || whole.RowNonFinite != rowNonFinite {
			t.Fatalf("counted %d skips, %d not finite, %d and %d in a row; want %d, %d, %d, %d",
				whole.Skipped, whole.NonFinite, whole.Row, whole.RowNonFinite, skipped, nonFinite, row, rowNonFinite)
		}
	})
}

// A gradient that is not finite is as bad as a loss.
func TestGuardRefusesGradientsThatAreNotFinite(t *testing.T) {
	for _, norm := range []float64{math.NaN(), math.Inf(1)} {
		g := newGuard(config.Guard{MaxSkips: 1})
		if g.accept(2, norm) || !g.exhausted() {
			t.Errorf("a gradient of norm %v was accepted", norm)
		}
	}
}

func TestDivergenceNamesItsCause(t *testing.T) {
	for _, c := range []struct {
		nonFinite      int
		finite, spikes bool // which causes the text names
	}{{3, true, false}, {0, false, true}, {1, true, true}} {
		e := DivergedError{Step: 7, Skips: 3, NonFinite: c.nonFinite, LR: 0.5, Dir: "runs/x"}
		text := e.Error()
		if strings.Contains(text, "not finite") != c.finite || strings.Contains(text, "guard.spike_z") != c.spikes {
			t.Errorf("%d of 3 not finite: %s", c.nonFinite, text)
		}
		for _, want := range []string{"step 7", "3 updates", "runs/x", "optimizer.lr than 0.5"} {
			if !strings.Contains(text, want) {
				t.Errorf("the text does not say %q: %s", want, text)
			}
		}
	}
}
