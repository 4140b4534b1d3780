package plan

import (
	"math"
	"testing"
)

// The models of Korthikanti et al., table 3, have the bytes and the savings of the paper.
func TestActivationsOfALayerAreThoseOfThePaper(t *testing.T) {
	gpt3 := Layer{Tokens: 2048, Context: 2048, Dim: 12288, Heads: 96, Tensor: 8}
	a := gpt3.Activations()
	for _, c := range []struct {
		name      string
		got, want float64 // GB
	}{
		{"whole", a.Whole, 2.869}, {"tensor", a.Tensor, 0.579}, {"sequence", a.Sequence, 0.359},
		{"selective", a.Selective, 0.107}, {"full", a.Full, 0.0503},
	} {
		if math.Abs(c.got/1e9-c.want) > 0.0006 {
			t.Errorf("%s: %.4f GB, want %.4f", c.name, c.got/1e9, c.want)
		}
	}
	for _, c := range []struct {
		name  string
		layer Layer
		saves float64 // percent, of computing attention again
	}{
		{"175B", gpt3, 70.2},
		{"530B", Layer{Tokens: 2048, Context: 2048, Dim: 20480, Heads: 128, Tensor: 8}, 65.3},
		{"22B", Layer{Tokens: 4 * 2048, Context: 2048, Dim: 6144, Heads: 64, Tensor: 8}, 75.8},
	} {
		a := c.layer.Activations()
		if got := 100 * (1 - a.Selective/a.Sequence); math.Abs(got-c.saves) > 0.05 {
			t.Errorf("%s: %.2f%% less, want %.1f%%", c.name, got, c.saves)
		}
	}
	one := Layer{Tokens: 64, Context: 32, Dim: 16, Heads: 2}.Activations()
	if one.Whole != one.Tensor || one.Whole != one.Sequence {
		t.Errorf("a rank alone: %+v", one)
	}
}
