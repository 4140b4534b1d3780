package train

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"anneal/dataset"
	"anneal/train/traintest"

	"pgregory.net/rapid"
)

// shareOf is the share of updates that were clipped.
func shareOf(clipped []bool) float64 {
	n := 0
	for _, c := range clipped {
		if c {
			n++
		}
	}
	return float64(n) / float64(len(clipped))
}

// However often a run is stopped and resumed, it knows how many updates were clipped in all, and of the last 64.
func TestClippedUpdatesAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clipped := rapid.SliceOfN(rapid.Bool(), 1, 200).Draw(t, "clipped")
		resumed := rapid.IntRange(0, len(clipped)-1).Draw(t, "resumed")
		var p Position
		for i, c := range clipped {
			p.updated(10, c)
			if i == resumed {
				text, err := json.Marshal(p)
				if p = (Position{}); err == nil {
					err = json.Unmarshal(text, &p)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			all := clipped[:i+1]
			got, want := p.ClipRate(), shareOf(all)
			if got != want || p.Updates != len(all) || p.Applied != int64(10*len(all)) {
				t.Fatalf("%+v: %v of all clipped, want %v", p, got, want)
			}
			if got, want := p.ClipRateRecent(), shareOf(all[max(0, len(all)-64):]); got != want {
				t.Fatalf("after %d updates: %v of the last clipped, want %v", len(all), got, want)
			}
		}
	})
	if p := (Position{}); !math.IsNaN(p.ClipRateRecent()) {
		t.Errorf("%v clipped before the first update", p.ClipRateRecent())
	}
}

// The events of steps say both, and those of a run that does not clip say neither.
func TestEventsSayHowManyUpdatesWereClipped(t *testing.T) {
	for _, limit := range []float64{0, 0.5} {
		cfg := smallConfig(t, traintest.Data(t), fmt.Sprint("train.clip=", limit), "train.steps=100")
		cfg.Model.Vocab = 301
		src := dataset.NewRandom(301, cfg.Model.Context, 5)
		tr := trainerOf(t, cfg, 1)
		var clipped []bool
		for range 70 {
			e, err := tr.Step(context.Background(), src)
			if err != nil {
				t.Fatal(err)
			}
			clipped = append(clipped, limit > 0 && e.GradNorm > limit)
			all, recent := shareOf(clipped), shareOf(clipped[max(0, len(clipped)-64):])
			if limit == 0 {
				all, recent = math.NaN(), math.NaN()
			}
			same := func(a, b float64) bool { return a == b || a != a && b != b }
			if !same(e.ClipRate, all) || !same(e.ClipRateRecent, recent) {
				t.Fatalf("step %d: %v of all, %v of the last 64; want %v and %v",
					e.Step, e.ClipRate, e.ClipRateRecent, all, recent)
			}
		}
		if all, recent := shareOf(clipped), shareOf(clipped[6:]); limit > 0 && (all == recent || recent == 0) {
			t.Errorf("the limit %v tells nothing: %v of all clipped, %v of the last 64", limit, all, recent)
		}
	}
}
