package device_test

import (
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// Pairs of query and key that a layout lets see each other are counted one by one.
func TestRecorderCountsVisiblePairs(t *testing.T) {
	l := &device.Layout{Len: 8, Graphs: []device.Graph{{Blocks: []device.QueryBlock{
		{Queries: device.Strip{First: 0, Step: 1, Count: 4},
			Keys: []device.KeyRange{{Strip: device.Strip{First: 0, Step: 1, Count: 4}, Near: 0, Far: 2}}},
		{Queries: device.Strip{First: 4, Step: 1, Count: 4},
			Keys: []device.KeyRange{{Strip: device.Strip{First: 0, Step: 3, Count: 3}, Near: 1, Far: 100}}},
	}}}}
	want := 0.0
	for i := range 8 {
		for j := range 8 {
			near := i < 4 && j < 4 && i-j >= 0 && i-j < 2
			far := i >= 4 && j%3 == 0 && i-j >= 1
			if near || far {
				want += 4 * 16 * 3 // per pair: two products of 16 numbers, in 3 heads
			}
		}
	}
	m := tensor.NewMeasure("m")
	rec := device.NewRecorder(device.Null{})
	out, lse, qkv := m.New(tensor.BF16, 8, 48), m.New(tensor.F32, 3, 8), m.New(tensor.BF16, 8, 144)
	rec.Attention(&out, &lse, &qkv, device.Heads{Q: 3, KV: 3, Size: 16}, device.Mask{Len: 8, Layout: l})
	for c := range rec.Calls {
		if c.Ops != want || c.M != 8 || c.N != 3 || c.K != 16 {
			t.Errorf("%+v, want %v operations", c, want)
		}
	}
}
