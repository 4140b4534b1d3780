package prepare

import (
	"math"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
)

// By hand: of 1,000 samples of 10 tokens, 900 of the weights 3:1 and 100 of the second source alone; sources of 200
// and 50 rows.
func TestPlanOfAMix(t *testing.T) {
	sources := []SourcePlan{
		{Name: "a", Use: dataset.Utilisation{Packing: dataset.Pad, Rows: 200, Positions: 2000, Trained: 1000, Cut: 3},
			hasVal: true},
		{Name: "b", Use: dataset.Utilisation{Packing: dataset.Pad, Rows: 50, Positions: 500, Trained: 500, Cut: 4}},
	}
	m := dataset.Mix{{Weights: []float64{3, 1}}, {From: 896, Weights: []float64{0, 1}}}
	p := NewMixPlan(sources, m, 1000, 10)
	for i, want := range []SourcePlan{{Weight: .672, Drawn: 6720, Epochs: 3.36, Again: 4720},
		{Weight: .328, Drawn: 3280, Epochs: 6.56, Again: 2780}} {
		got := p.Sources[i]
		if math.Abs(got.Weight-want.Weight) > 1e-12 || got.Drawn != want.Drawn ||
			math.Abs(got.Epochs-want.Epochs) > 1e-12 || got.Again != want.Again {
			t.Errorf("source %d: %+v, want %+v", i, got, want)
		}
	}
	if u := p.Utilisation(); math.Abs(u.Share()-(.672*.5+.328)) > 1e-3 || u.Rows != 250 || u.Cut != 7 ||
		u.Packing != dataset.Pad {
		t.Errorf("utilisation %+v", u)
	}
	p.Limit = 7
	r := strings.Join(p.Remarks(), "\n")
	if !strings.Contains(r, "b is read 6.6 times") || strings.Contains(r, "a is read") ||
		!strings.Contains(r, "b has no validation") {
		t.Errorf("remarks %q", r)
	}
	if strings.Contains(r, "unimax:7") {
		t.Errorf("within its epochs: %q", r)
	}
	if p.Limit = 5; !strings.Contains(strings.Join(p.Remarks(), "\n"), "unimax:5 is impossible") {
		t.Errorf("6.6 epochs where 5 are permitted: %q", p.Remarks())
	}
	if len(p.Weights) != 2 || p.Weights[1].From != 8960 || p.Weights[0].Weights[0] != .75 {
		t.Errorf("weights %+v", p.Weights)
	}
}

// What is printed to be pasted is a configuration with these weights.
func TestMixConfigIsAConfig(t *testing.T) {
	text := MixConfig([]config.Source{{Name: "a", Path: "/d/a"}, {Name: "b", Path: "/d/b"}},
		[]float64{1. / 3, 2. / 3}, "natural")
	if want := "data:\n  mix: \"a=/d/a, b=/d/b\"\n  weights: \"a=0.3333 b=0.6667\"  # natural\n"; text != want {
		t.Errorf("%s, want %s", text, want)
	}
	if w, err := config.ParseWeighting("a=0.3333 b=0.6667", []string{"a", "b"}); err != nil ||
		math.Abs(w.Weights(nil, 0)[0]-1./3) > 1e-4 {
		t.Errorf("%v, %v", w, err)
	}
}
