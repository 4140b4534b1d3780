package model

import (
	"slices"
	"testing"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/device/devicetest"
	"anneal/precision"
)

// A generator on a device apart gives the logits of the CPU, for prompts of several pieces, tokens one by one, and a
// sequence that outgrows the context.
func TestGenerationOnADeviceApart(t *testing.T) {
	c := Config{
		Layers: 3, Dim: 32, Heads: 4, KVHeads: 2, HeadDim: 8, FFN: 48, Context: 2*maxChunk + 10, Vocab: 61,
		RopeTheta: 10000, NormEps: 1e-5, InitStd: 0.3,
		Attention: seen("window:30,full,linear:gated"),
	}
	p, err := precision.Lookup("bf16")
	if err != nil {
		t.Fatal(err)
	}
	generator := func(dev device.Device, err error) *Generator {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(dev.Close)
		params, err := dev.NewArena("parameters", Measure(c, p, 1, 1, false).Params)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { params.Close() })
		m := New(c, MemoryOf(dev, p, params, nil))
		m.Init(3)
		g, err := NewGenerator(m, p, dev)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		return g
	}
	here, err := cpu.New(2)
	want := generator(here, err)
	far, err := devicetest.New(2)
	got := generator(far, err)
	ids := make([]int32, 2*maxChunk+5)
	for i := range ids {
		ids[i] = int32(i * i % c.Vocab)
	}
	for range 8 {
		a, b := got.Logits(ids), want.Logits(ids)
		if !slices.Equal(a.F32(), b.F32()) {
			t.Fatalf("the logits after %d tokens differ from those on the CPU", len(ids))
		}
		ids = append(ids, want.Next(ids, Sampling{}))
	}
}
