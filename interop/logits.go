package interop

import (
	"fmt"
	"slices"

	"anneal/device"
	"anneal/hf"
	"anneal/model"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// Logits returns the logits [V] of the token that follows ids, computed by the model in a directory under a policy. It
// reads the weights layer by layer into the same memory, and passes each weight to see, in transformers' layout and
// valid until see returns. It takes the memory of the embedding or of one layer, whichever is larger, or of both if
// the head is tied, plus that of the largest tensor.
func Logits(dir string, p precision.Policy, dev device.Device, ids []int32,
	see func(name string, values []float32) error) ([]float64, error) {
	src, err := hf.Open(dir)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	c, err := FromHF(src.Config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if len(ids) == 0 || len(ids) > c.Context || int(slices.Max(ids)) >= c.Vocab || slices.Min(ids) < 0 {
		return nil, fmt.Errorf("%s: the tokens %v do not fit a context of %d and a vocabulary of %d", dir, ids,
			c.Context, c.Vocab)
	}
	need := tensor.NewMeasure("")
	for measured, i := newWindow(c, device.Null{}, need, p), 0; i < len(measured.units); i++ {
		measured.open(i)
	}
	arena, err := dev.NewArena("weights of a layer", need.Peak())
	if err != nil {
		return nil, err
	}
	defer arena.Close()
	w := newWindow(c, dev, arena, p)
	var values []float32
	return w.m.Probe(p, dev, ids, func(unit int) error {
		w.open(unit)
		for _, v := range w.m.HFViewsOf(w.units[unit]) {
			n := v.Tensor.Len()
			values = slices.Grow(values[:0], n)[:n]
			if err := src.Read(v.Name, values); err != nil {
				return err
			}
			if err := see(v.Name, values); err != nil {
				return err
			}
			v.SetValues(values)
		}
		return nil
	})
}

// A window is a model in which only one unit at a time, and the head, have memory.
type window struct {
	m     *model.Decoder
	mem   model.Memory
	begin int // position of the unit in the arena
	units [][]*nn.Param
}

func newWindow(c model.Config, dev device.Memory, a *tensor.Arena, p precision.Policy) *window {
	w := &window{m: model.Declare(c), mem: model.Memory{Device: dev, Params: a, DType: p.Master}}
	w.m.AllocateTables(w.mem)
	w.begin, w.units = a.Mark(), w.m.UnitParams()
	return w
}

// open gives a unit its memory, which it takes from the previous unit.
func (w *window) open(unit int) {
	w.mem.Params.Release(w.begin)
	for _, x := range w.units[unit] {
		x.Allocate(w.mem.Params, w.mem.WeightOf(x.Role), nil, w.mem.DType)
	}
	if unit == 0 && w.m.Config.TieEmbeddings {
		w.begin = w.mem.Params.Mark()
	}
}
