package nn

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// golden is testdata/positions.json, which transformers computed in float32; make_positions.py is how.
type golden struct {
	RoPE []struct {
		Scaling     string
		Head        int
		Theta       float64
		Original    int
		Positions   int
		Attention   float64
		Frequencies []float64
	}
	ALiBi map[string][]float64
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	text, err := os.ReadFile("testdata/positions.json")
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	if err != nil || len(g.RoPE) == 0 || len(g.ALiBi) == 0 {
		t.Fatal(err, "or nothing in it")
	}
	return g
}

func parsed(t *testing.T, text string) RoPEScaling {
	t.Helper()
	s, err := ParseRoPEScaling(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRoPEFrequenciesAreThoseOfTransformers(t *testing.T) {
	for _, c := range readGolden(t).RoPE {
		s := parsed(t, c.Scaling)
		got := s.Frequencies(c.Head, c.Theta, Lengths{c.Original, c.Positions})
		if len(got) != len(c.Frequencies) {
			t.Fatalf("%s, E = %d: %d frequencies, want %d", c.Scaling, c.Head, len(got), len(c.Frequencies))
		}
		for i, want := range c.Frequencies {
			if math.Abs(got[i]-want) > 2e-6*want { // float32
				t.Errorf("%s, E = %d: pair %d turns by %v, want %v", c.Scaling, c.Head, i, got[i], want)
			}
		}
		if a := s.AttentionFactor(c.Original); math.Abs(a-c.Attention) > 1e-12 {
			t.Errorf("%s: attention factor %v, want %v", c.Scaling, a, c.Attention)
		}
	}
}

// The numbers of the papers' own code, in float64.
func TestRoPEFrequenciesGolden(t *testing.T) {
	for _, c := range []struct {
		scaling  string
		original int
		theta    float64
		want     map[int]float64
	}{
		{"yarn:16", 4096, 1e4, map[int]float64{0: 1, 20: math.Pow(1e4, -40.0/128), 21: .04694086, 33: .0046004354678,
			45: 1.5177160473e-4, 46: 8.334508951e-5}},
		{"llama3:8", 8192, 5e5, map[int]float64{28: .003211445995, 29: .002166570764, 30: .001371893568,
			33: 3.1269375e-4, 35: 9.5562124e-5, 63: 3.068926e-7}},
		{"linear:8", 0, 1e4, map[int]float64{0: .125, 32: .00125}},
		{"ntk:8", 0, 1e4, map[int]float64{0: 1, 1: math.Pow(82684.6226, -2.0/128),
			63: math.Pow(82684.6226, -126.0/128)}},
		{"none", 0, 1e4, map[int]float64{0: 1, 32: .01}},
	} {
		got := parsed(t, c.scaling).Frequencies(128, c.theta, Lengths{c.original, c.original})
		for i, want := range c.want {
			if math.Abs(got[i]-want) > 2e-7*want {
				t.Errorf("%s: pair %d turns by %.12g, want %.12g", c.scaling, i, got[i], want)
			}
		}
	}
	if got, want := parsed(t, "yarn:16").AttentionFactor(0), 1.2772588722; math.Abs(got-want) > 1e-10 {
		t.Errorf("yarn:16 multiplies cos and sin by %v, want %v", got, want)
	}
}

// Every scaling leaves each frequency between that without scaling and that divided by the factor, and keeps their
// order; a factor of 1 changes nothing.
func TestRoPEScalingSlowsByAtMostItsFactor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := ropeScalings[rapid.SampledFrom([]string{"linear", "ntk", "yarn", "llama3"}).Draw(t, "kind")]
		s.Factor = rapid.Float64Range(1, 64).Draw(t, "factor")
		original := rapid.IntRange(2, 1<<17).Draw(t, "original")
		lengths := Lengths{original, original}
		e, theta := 2*rapid.IntRange(1, 128).Draw(t, "E/2"), rapid.Float64Range(100, 1e6).Draw(t, "theta")
		plain, got := RoPEScaling{}.Frequencies(e, theta, lengths), s.Frequencies(e, theta, lengths)
		for i, f := range got {
			if f > plain[i]*(1+1e-12) || f < plain[i]/s.Factor*(1-1e-12) {
				t.Fatalf("pair %d turns by %v, outside of [%v, %v]", i, f, plain[i]/s.Factor, plain[i])
			}
			if i > 0 && f > got[i-1]*(1+1e-12) {
				t.Fatalf("pair %d turns by %v, more than the one before, %v", i, f, got[i-1])
			}
		}
		s.Factor = 1
		for i, f := range s.Frequencies(e, theta, lengths) {
			if math.Abs(f-plain[i]) > 1e-12*f {
				t.Fatalf("with a factor of 1 pair %d turns by %v, not %v", i, f, plain[i])
			}
		}
		if s.AttentionFactor(original) != 1 {
			t.Fatalf("with a factor of 1 attention is multiplied by %v", s.AttentionFactor(original))
		}
	})
}

// A list of factors has one for each pair of a head.
func TestFactorsAreThoseOfPairs(t *testing.T) {
	s := parsed(t, "longrope:4:short=1,1:long=1,2")
	if err := s.CheckPairs(4); err != nil {
		t.Error(err)
	}
	if s.CheckPairs(6) == nil {
		t.Error("two factors are taken for three pairs")
	}
}

// The attention factor is in the tables, and there alone: position 0 is that times the identity.
func TestYaRNTablesHoldTheAttentionFactor(t *testing.T) {
	a, err := tensor.NewArena("test", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := parsed(t, "yarn:4")
	want := 0.1*math.Log(4) + 1
	for _, rotated := range []int{32, 12} { // elements that are not rotated are scaled, too
		r := NewRoPE(device.Host{}, a, tensor.F64, 100, 32, rotated, 1e4, s, 64)
		for i := range r.Cos.Len() {
			if cos, sin := r.Cos.Float64(i), r.Sin.Float64(i); math.Abs(math.Hypot(cos, sin)-want) > 1e-12 {
				t.Fatalf("%d rotated: entry %d has the length %v, want %v", rotated, i, math.Hypot(cos, sin), want)
			}
		}
		if got := r.Cos.Float64(0); got != want {
			t.Errorf("%d rotated: position 0 multiplies by %v, want %v", rotated, got, want)
		}
	}
}

func TestRoPEScalingReadsBack(t *testing.T) {
	for _, text := range []string{
		"none", "linear:2", "ntk:8", "yarn:4", "yarn:2.5:fast=16:slow=2:attention=1.3", "llama3:8", "llama3:32:low=2",
		"dynamic:2", "longrope:4:long=1,1.5,2", "longrope:32:short=1,1:long=1.05,20:attention=1.2",
	} {
		if got := parsed(t, text).String(); got != text {
			t.Errorf("%s is written %s", text, got)
		}
	}
	for text, again := range map[string]string{"": "none", "yarn:4:fast=32": "yarn:4", "linear:4.0": "linear:4",
		"longrope:4:long=1.0,2": "longrope:4:long=1,2"} {
		if got := parsed(t, text).String(); got != again {
			t.Errorf("%q is written %s, want %s", text, got, again)
		}
	}
	for _, text := range []string{
		"yarn", "yarn:", "yarn:0.5", "yarn:-4", "yarn:NaN", "yarn:Inf", "yarn:4:", "yarn:4:fast", "yarn:4:fast=0",
		"yarn:4:fast=0.5", "yarn:4:low=2", "yarn:4:fast=3:fast=4", "linear:4:fast=3", "dynamic",
		"dynamic:4:fast=3", "longrope:4", "longrope:4:long=", "longrope:4:long=1,,2",
		"longrope:4:long=1,0", "longrope:4:short=1", "YaRN:4", "none:4",
		"llama3:8:low=4", "llama3:8:high=NaN", "yarn:4,fast=3", "linear",
	} {
		if s, err := ParseRoPEScaling(text); err == nil {
			t.Errorf("%q is read as %+v", text, s)
		}
	}
}

func TestALiBiSlopesAreThoseOfTransformers(t *testing.T) {
	for n, want := range readGolden(t).ALiBi {
		heads, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		got := ALiBiSlopes(heads)
		if len(got) != len(want) {
			t.Fatalf("%d heads: %d slopes", heads, len(got))
		}
		for h, slope := range want {
			if math.Abs(got[h]-slope) > 1e-6*slope { // powers taken in float32
				t.Errorf("%d heads: slope %d is %v, want %v", heads, h, got[h], slope)
			}
		}
	}
}

func TestALiBiSlopesGolden(t *testing.T) {
	for _, want := range [][]float64{
		{1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 256},
		{1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 256, .7071067812, .3535533906,
			.1767766953, .0883883476},
		{.25, .0625, .015625, .00390625, .5, .125},
	} {
		for h, got := range ALiBiSlopes(len(want)) {
			if math.Abs(got-want[h]) > 1e-10 {
				t.Errorf("%d heads: slope %d is %v, want %v", len(want), h, got, want[h])
			}
		}
	}
}
