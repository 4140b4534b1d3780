package model

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/precision"
)

// convolved is a small model with short convolutions in every second layer.
var convolved = func() Config {
	c := small
	c.Attention, c.ShortConv = seen("delta:gated,full"), 4
	return c
}()

func TestGradientsOfShortConvolutionsMatchFiniteDifferences(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"delta rule": func(*Config) {},
		"gla":        func(c *Config) { c.Attention = seen("gla") },
		"linear":     func(c *Config) { c.Attention, c.QKNorm = seen("linear"), true },
		"recomputed": func(c *Config) { c.Recompute = Layout{Whole: 1, Segment: 1, Attention: 1} },
		"mup":        func(c *Config) { setMuP(c, 4, 2, 12, 0, 1.5, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			c := convolved
			change(&c)
			x := newBench(t, c, "fp64", 2, 8)
			x.gradients()
			checkGradients(t, x)
		})
	}
}

// A document begins with nothing before it: packed documents give the losses of separate ones.
func TestShortConvolutionsStayInTheirDocument(t *testing.T) { checkPacking(t, convolved) }

func TestShortConvolutionsKeepTheirBitsAndFootprint(t *testing.T) {
	checkFootprint(t, convolved)
	for _, policy := range precision.Names() {
		c := convolved
		c.Layers, c.Attention = 5, seen("linear")
		checkRecomputation(t, c, policy)
		checkLossesWithoutTape(t, convolved, policy)
	}
}

// A layer of linear attention has k taps for each column of queries, keys and values more, others none; they start with
// the deviation 1/√(3k) of PyTorch's convolutions.
func TestShortConvolutionsAddTheirTaps(t *testing.T) {
	c := outline(4, 64, 4, 2, 192, 32, 100, false).Config
	c.Attention = seen("delta,full")
	without := Outline(c, precision.Policy{}).Count()
	c.ShortConv = 4
	m := Outline(c, precision.Policy{})
	if got, want := m.Count()-without, int64(2*4*(4+2*2)*16); got != want {
		t.Errorf("%d parameters more, want %d", got, want)
	}
	for _, p := range m.Params() {
		if p.Name == "layers.2.attention.short_conv" && (p.Std < 0.288 || p.Std > 0.289) {
			t.Errorf("taps start with the deviation %v, want 1/√12", p.Std)
		}
	}
}

// A sequence that goes back as far as a cache of linear attention allows finds the inputs of its convolutions there.
func TestCachesReachBackForShortConvolutions(t *testing.T) {
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	c := convolved
	c.Context = 200
	rapid.Check(t, func(t *rapid.T) {
		cached, plain := twins(t, dev, c, "fp32")
		defer cached.Close()
		defer plain.Close()
		ids := make([]int32, 2*device.LinearChunk-1)
		for i := range ids {
			ids[i] = int32(rapid.IntRange(0, c.Vocab-1).Draw(t, "token"))
		}
		cached.Logits(ids)
		ids = ids[:device.LinearChunk+1+rapid.IntRange(0, 3).Draw(t, "further")]
		if got, want := cached.Logits(ids), plain.Logits(ids); !bytes.Equal(got.Raw(), want.Raw()) {
			t.Fatalf("%d tokens have other logits after %d than without a cache", len(ids), 2*device.LinearChunk-1)
		}
	})
}
