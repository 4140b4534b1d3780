package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"anneal/config"
	"anneal/device/cpu"
	"anneal/tensor"
)

// family is a small model at three widths.
func family(standard bool, more ...string) Family {
	return Family{
		Overrides: append([]string{"data.path=random", "model.layers=2", "model.dim=32", "model.heads=4",
			"model.context=64", "model.vocab=256"}, more...),
		Widths: []int{32, 64, 128}, Standard: standard,
	}
}

// MUP-1: under muP no activation goes with the width before and during the first updates; under the standard
// parametrisation the residual stream grows at least like the width, and the check says so.
func TestActivationsAreFlatUnderMuPOnly(t *testing.T) {
	for _, v := range []struct {
		lr   float64
		more []string
	}{
		{0.003, nil},
		{0.003, []string{"model.tie_embeddings=false", "model.qk_norm=true"}},
		{0.003, []string{"model.init=xavier"}},
		{0.003, []string{"model.kv_heads=2", "precision=fp32"}},
		{0.001, []string{"model.family=anneal"}},
		{0.003, []string{"model.family=gpt2"}},
		{0.001, []string{"optimizer.name=lion"}},
		{3, []string{"optimizer.name=sgd"}},
		{0.03, []string{"optimizer.name=muon", "optimizer.muon_scale=spectral_mup"}},
	} {
		more := v.more
		c, err := CheckCoordinates(context.Background(), CoordinateOptions{
			Family: family(false, more...), Random: true, Steps: 3, Seeds: 2, LR: v.lr,
		})
		if err != nil {
			t.Errorf("%v: %v", more, err)
		}
		if want := seenKinds * 4; len(c.Rows) != want {
			t.Fatalf("%v: %d rows, want %d", more, len(c.Rows), want)
		}
		for _, r := range c.Rows {
			if !(r.Size[0] > 0) || !r.Flat {
				t.Errorf("%v: %s after %d updates is %.3g at widths %v, slope %.2f",
					more, r.Tensor, r.Step, r.Size, c.Widths, r.Slope)
			}
		}
	}
	c, err := CheckCoordinates(context.Background(), CoordinateOptions{
		Family: family(true), Random: true, Steps: 3, Seeds: 2, LR: 0.01,
	})
	var steep *NotFlatError
	if !errors.As(err, &steep) || !strings.Contains(err.Error(), steep.Worst.Tensor) {
		t.Fatalf("standard parametrisation: error %v", err)
	}
	largest := 0.0
	for _, r := range c.Rows {
		if r.Tensor == "residual" {
			largest = max(largest, r.Slope)
		}
	}
	if largest < 1 {
		t.Errorf("standard parametrisation: the residual stream goes like width^%.2f, want 1 or more: %+v",
			largest, c.Rows)
	}
}

// CompleteP: with a base depth the residual stream of a model eight times as deep has after three updates the size it
// has at the base depth; without, the steps of all layers add up.
func TestResidualStreamIsFlatOverDepthWithABaseDepth(t *testing.T) {
	slope := func(more ...string) (float64, []float64) {
		depths, size := []int{2, 4, 16}, []float64{}
		for _, layers := range depths {
			f := family(false, append([]string{fmt.Sprintf("model.layers=%d", layers)}, more...)...)
			f.Overrides = append(f.Overrides, "model.init=xavier", "model.zero_init=residual")
			o := CoordinateOptions{Family: f, Random: true, Steps: 3, Seeds: 1, LR: 0.003}
			cfg, err := o.of(32)
			if err != nil {
				t.Fatal(err)
			}
			seen, err := o.observe(context.Background(), cfg, o.LR, 0)
			if err != nil {
				t.Fatal(err)
			}
			size = append(size, seen[3][seenResidual])
		}
		return logSlope(depths, size), size
	}
	if s, size := slope("model.mup_base_layers=2"); math.Abs(s) > maxSlope {
		t.Errorf("with a base depth the stream goes like depth^%.2f: %v", s, size)
	}
	if s, size := slope(); s < 0.5 {
		t.Errorf("without one it goes like depth^%.2f: %v; want growth", s, size)
	}
}

// y = 3·x^p has the slope p; nothing but zeros is flat; one zero, or what is not finite, is no number.
func TestLogSlope(t *testing.T) {
	x := []int{32, 64, 128, 512}
	for _, p := range []float64{-0.5, 0, 1, 2} {
		var y []float64
		for _, v := range x {
			y = append(y, 3*math.Pow(float64(v), p))
		}
		if got := logSlope(x, y); math.Abs(got-p) > 1e-12 {
			t.Errorf("slope %v, want %v", got, p)
		}
	}
	if got := logSlope(x, make([]float64, 4)); got != 0 {
		t.Errorf("zeros have slope %v", got)
	}
	c := Coordinates{Widths: x}
	size := [][][seenKinds]float64{make([][seenKinds]float64, 4)}
	for i := range size[0] {
		size[0][i] = [seenKinds]float64{1, 1, math.NaN(), 1, 1}
	}
	var steep *NotFlatError
	if err := c.judge(size); !errors.As(err, &steep) || steep.Worst.Tensor != "ffn" {
		t.Errorf("activations that are not numbers: %v", err)
	}
}

// A member differs from its config in its width and what follows from it.
func TestMembersOfAFamily(t *testing.T) {
	f := family(false, "model.kv_heads=2", "model.ffn=96")
	cfg, err := f.of(128)
	if err != nil {
		t.Fatal(err)
	}
	m := cfg.Model
	if m.Dim != 128 || m.Heads != 16 || m.KVHeads != 8 || m.HeadDim != 8 || m.FFN != 384 || !m.MuP ||
		m.MuPBaseDim != 32 || m.MuPBaseFFN != 96 {
		t.Errorf("four times as wide: %+v", m)
	}
	for _, widths := range [][]int{{32, 72}, {0, 32}, {64}, {64, 32}} {
		o := CoordinateOptions{Family: f, Random: true, Steps: 1, Seeds: 1}
		o.Widths = widths
		var bad config.Problem
		if _, err := CheckCoordinates(context.Background(), o); !errors.As(err, &bad) || bad.Try == "" {
			t.Errorf("widths %v: error %v", widths, err)
		}
	}
	f = Family{Overrides: []string{"data.path=random", "model.dim=384", "model.heads=4"}}
	if err := f.setSizes(); err != nil || f.Widths[0] != 96 || f.Widths[3] != 768 {
		t.Errorf("widths %v of heads of 96, %v", f.Widths, err)
	}
}

// Of a large tensor some numbers are looked at: as many of each position in a sequence, for positions differ in size.
func TestTheProbeSeesEveryPositionAlike(t *testing.T) {
	const context, rows, cols = 64, 1024, 512
	x := tensor.Of(make([]float32, rows*cols), rows, cols)
	for r := 0; r < rows; r += context {
		for i := range cols {
			x.SetFloat64(r*cols+i, context)
		}
	}
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	p := &probe{Device: dev}
	p.see(seenAttention, x)
	if mean := p.take()[seenAttention]; mean != 1 {
		t.Errorf("one position in %d has the size 64: the mean is %v, want 1", context, mean)
	}
}
