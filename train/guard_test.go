package train

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"anneal/config"
)

// A guard saved and restored anywhere decides like one that never was, and its counts are those of the decisions.
func TestGuardSurvivesACheckpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := config.Guard{
			MaxSkips: 5, SpikeZ: rapid.SampledFrom([]float64{0, 2, 4}).Draw(t, "spike z"),
			Window: rapid.IntRange(4, 80).Draw(t, "window"),
		}
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
				var saved Guard
				if err := json.Unmarshal(data, &saved); err != nil {
					t.Fatal(err)
				}
				parted = newGuard(limits)
				parted.restore(saved, i)
			}
			a, b := whole.accept(i+1, l, 1), parted.accept(i+1, l, 1)
			if a != b || whole.Exhausted() != parted.Exhausted() {
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
		if whole.Skipped != skipped || whole.NonFinite != nonFinite || whole.Row != row ||
			whole.RowNonFinite != rowNonFinite {
			t.Fatalf("counted %d skips, %d not finite, %d and %d in a row; want %d, %d, %d, %d",
				whole.Skipped, whole.NonFinite, whole.Row, whole.RowNonFinite, skipped, nonFinite, row, rowNonFinite)
		}
	})
}

// A gradient that is not finite is as bad as a loss.
func TestGuardRefusesGradientsThatAreNotFinite(t *testing.T) {
	for _, norm := range []float64{math.NaN(), math.Inf(1)} {
		g := newGuard(config.Guard{MaxSkips: 1, Window: 4})
		if g.accept(1, 2, norm) || !g.Exhausted() {
			t.Errorf("a gradient of norm %v was accepted", norm)
		}
	}
}

// Among noisy losses and norms, spikes of k deviations are refused exactly where k is above spike_z, whichever of the
// two spikes, and none of them moves the window: the decisions are those of a reference that knows all accepted
// numbers.
func TestGuardFindsInjectedSpikes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := config.Guard{
			MaxSkips: 1 << 30, SpikeZ: rapid.SampledFrom([]float64{3, 6}).Draw(t, "spike z"),
			Window: rapid.IntRange(8, 128).Draw(t, "window"),
		}
		g := newGuard(c)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		level, slope := rapid.Float64Range(0.5, 9).Draw(t, "level"), rapid.Float64Range(0, 1e-3).Draw(t, "slope")
		accepted := map[string][]float64{}
		above := func(name string, x float64) bool {
			past := accepted[name]
			if len(past) < (c.Window+1)/2 {
				return false
			}
			past = past[max(0, len(past)-c.Window):]
			sum, squares, n := 0.0, 0.0, float64(len(past))
			for _, v := range past {
				sum, squares = sum+v, squares+v*v
			}
			mean, std := sum/n, math.Sqrt(max(0, squares/n-sum/n*sum/n))
			return x > mean+c.SpikeZ*max(std, 1e-3*mean)
		}
		found := 0
		for i := range 3 * c.Window {
			loss, norm := level*(1-slope*float64(i))+0.02*rng.NormFloat64(), 1+0.1*rng.NormFloat64()
			spike := rng.IntN(10)
			if spike == 0 {
				loss += 0.02 * (2 + 8*rng.Float64())
			} else if spike == 1 {
				norm += 0.1 * (2 + 8*rng.Float64())
			}
			want := !above("loss", loss) && !above("norm", norm)
			if got := g.accept(i+1, loss, norm); got != want {
				t.Fatalf("step %d, window %d, z %v: loss %v, norm %v accepted: %v, want %v",
					i, c.Window, c.SpikeZ, loss, norm, got, want)
			}
			if want {
				accepted["loss"], accepted["norm"] = append(accepted["loss"], loss), append(accepted["norm"], norm)
			} else {
				found++
			}
		}
		if g.Skipped != found || len(g.Losses) > c.Window || cap(g.Losses) != c.Window {
			t.Fatalf("%d skips counted, %d made; the window holds %d of %d", g.Skipped, found, len(g.Losses), c.Window)
		}
	})
}

// A run that resumes with another window keeps what fits of the old one.
func TestGuardChangesItsWindow(t *testing.T) {
	long := newGuard(config.Guard{SpikeZ: 6, Window: 64})
	for i := range 64 {
		long.accept(i+1, float64(i), float64(i))
	}
	for _, n := range []int{16, 100} {
		g := newGuard(config.Guard{SpikeZ: 6, Window: n})
		g.restore(long, 0)
		if want := min(n, 64); len(g.Losses) != want || len(g.Norms) != want || g.Losses[want-1] != 63 ||
			g.Losses[0] != float64(64-want) {
			t.Errorf("window %d: %d losses from %v to %v", n, len(g.Losses), g.Losses[0], g.Losses[len(g.Losses)-1])
		}
	}
}

// Numbers that hardly differ have no spikes in their last digits.
func TestGuardIgnoresTheLastDigits(t *testing.T) {
	g := newGuard(config.Guard{SpikeZ: 6, Window: 8})
	for range 8 {
		g.accept(1, 2, 1)
	}
	if !g.accept(1, 2.01, 1.005) || g.accept(2, 2.1, 1) || g.accept(3, 2, 1.1) {
		t.Error("of numbers that were all equal, half a percent up is a spike or five percent is none")
	}
}
