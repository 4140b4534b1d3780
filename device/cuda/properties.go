//go:build cuda && linux

package cuda

import (
	"fmt"

	"anneal/device"
	"anneal/tensor"
)

// Name implements device.Properties.
func (d *Device) Name() string { return "cuda " + d.card.Name }

// Index returns the number of the card among those that this process sees.
func (d *Device) Index() int { return d.card.Index }

// Kernels implements device.Properties.
func (d *Device) Kernels() string { return fmt.Sprintf("cuda sm_%d", d.card.Capability) }

// Peak implements device.Properties.
func (d *Device) Peak(operand tensor.DType) float64 {
	half, single := d.card.Peak()
	switch operand {
	case tensor.BF16, tensor.F16:
		return half / 1e9
	case tensor.TF32:
		return half / 2e9
	}
	return single / 1e9
}

// Blocked implements device.Properties: cards read weights without reordering them.
func (d *Device) Blocked(tensor.DType) tensor.DType { return tensor.Invalid }

// FreeMemory implements device.Properties.
func (d *Device) FreeMemory() int64 {
	var free int
	d.do(func() (err error) {
		free, _, err = d.driver.MemInfo()
		return err
	})
	return int64(free)
}

// Threads implements device.Properties: the host does not compute.
func (d *Device) Threads() int { return 0 }

// Apart implements device.Properties.
func (d *Device) Apart() bool { return Absent{}.Apart() }

// LogitBytes implements device.Properties.
func (d *Device) LogitBytes() int { return Absent{}.LogitBytes() }

// ProductScratch implements device.Properties with the workspace of cuBLASLt. Operands that are converted share the
// memory of attention.
func (d *Device) ProductScratch(tensor.DType) int { return workspace }

// AttentionScratch implements device.Properties.
func (d *Device) AttentionScratch(storage tensor.DType, tokens int, heads device.Heads, mask device.Mask) int {
	f := flash{Heads: heads, storage: storage, tokens: tokens, rows: tokens / mask.Len}
	if l := mask.Layout; l != nil {
		if f.plan = d.attention.plans[l]; f.plan == nil {
			f.plan = newPlan(l)
		}
	}
	return max(f.forwardScratch(), f.gradScratch())
}

// LinearAttentionScratch implements device.Properties.
func (d *Device) LinearAttentionScratch(
	storage tensor.DType, tokens, length int, heads device.Heads, gated bool,
) int {
	l := linear{wide: tensor.F32, heads: heads, length: length, rows: tokens / length}
	l.chunks = ceilDiv(length, linearChunk)
	if storage == tensor.F64 {
		l.wide = tensor.F64
	}
	return l.gradScratch(gated).all()
}

// ScratchBytes implements device.Properties.
func (d *Device) ScratchBytes() int { return d.memory.scratchSize }
