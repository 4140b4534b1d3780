package model

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
)

// A copied is a matrix and the format of its copy. Passes without gradients multiply by the copy.
type copied struct {
	w  *nn.Param
	as tensor.DType
}

// copiedFor returns the matrices that a generator with a cache copies; it then reads the copies once per token. If
// operands are BF16, copies are rounded to BF16, which halves the bytes to read. They are in the device's blocked
// format if it has one, because it reads that faster. Copies in FP32 are made only if they take less than half of the
// free memory. FP8 layers have no copies: they quantise their weights in each pass.
func (m *Decoder) copiedFor(p precision.Policy, dev device.Properties) (list []copied) {
	if p.Weight != tensor.F32 || m.eight != nil {
		return nil
	}
	blocked := dev.Blocked(p.Operand)
	for _, w := range m.matrices() {
		switch {
		case blocked != tensor.Invalid && blockable(w):
			list = append(list, copied{w, blocked})
		case p.Operand == tensor.BF16:
			list = append(list, copied{w, tensor.BF16})
		}
	}
	if free := dev.FreeMemory(); p.Operand == tensor.F32 && free > 0 && int64(copyBytes(list)) > free/2 {
		return nil
	}
	return list
}

// matrices returns the parameters that are operands of matrix products, except those of FP8 layers.
func (m *Decoder) matrices() (list []*nn.Param) {
	for _, w := range m.params {
		if (w.Role == nn.Matrix || w == m.head) && w.FP8 == nil {
			list = append(list, w)
		}
	}
	return list
}

// blockable reports whether a matrix can be held in blocks. Experts cannot, because products take them one by one from
// a fused matrix.
func blockable(w *nn.Param) bool { return w.Share == 0 && tensor.FitsBlocks(w.Value.Cols()) }

// copyBytes is the memory of copies.
func copyBytes(list []copied) int {
	mem := tensor.NewMeasure("")
	for _, c := range list {
		mem.New(c.as, c.w.Value.Shape()...)
	}
	return mem.Peak()
}

// makeCopies copies matrices to memory of a.
func makeCopies(a *tensor.Arena, dev device.Device, list []copied) autograd.Rounded {
	all := autograd.Rounded{}
	copies := make([]tensor.Tensor, len(list))
	for i, c := range list {
		copies[i] = a.New(c.as, c.w.Value.Shape()...)
		all[&c.w.Param] = &copies[i]
		if !c.as.Blocked() {
			dev.Copy(&copies[i], &c.w.Value)
		}
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
				if list[i].as.Blocked() {
					tensor.ToBlocks(&copies[i], &list[i].w.Value)
				}
			}
		})
	}
	workers.Wait()
	return all
}

// HoldEight makes copies of the model's matrices in 8 bits (tensor.Q8), by which passes without gradients multiply from
// now on: those of evaluators, generators and batchers that are made later. The copies are those of the weights as they
// are now, and live in memory that the caller closes after the model's last pass. Embeddings, experts, matrices of FP8
// layers and those whose rows are not whole blocks stay as they are; it is an error if all do. The device must be the
// CPU.
func (m *Decoder) HoldEight(p precision.Policy, dev device.Device) (*tensor.Arena, error) {
	var list []copied
	for _, w := range m.matrices() {
		if p.Operand != tensor.F64 && blockable(w) {
			list = append(list, copied{w, tensor.Q8})
		}
	}
	if len(list) == 0 {
		return nil, errors.New("no matrix of this model can be held in 8 bits")
	}
	a, err := dev.NewArena("weights in 8 bits", copyBytes(list))
	if err != nil {
		return nil, err
	}
	m.eight = makeCopies(a, dev, list)
	return a, nil
}

// Copies returns the copies that HoldEight made, for a tape of passes without gradients; nil if there are none.
func (m *Decoder) Copies() autograd.Rounded { return m.eight }
