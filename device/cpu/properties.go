package cpu

import (
	"fmt"
	"sync"
	"time"

	"anneal/device"
	"anneal/device/cpu/flash"
	"anneal/device/cpu/gemm"
	"anneal/internal/isa"
	"anneal/internal/machine"
	"anneal/tensor"
)

// Name implements device.Properties.
func (d *Device) Name() string {
	plural := "s"
	if d.Threads() == 1 {
		plural = ""
	}
	return fmt.Sprintf("cpu %v, %d thread%s", d.tier, d.Threads(), plural)
}

// Kernels implements device.Properties with the name of the tier.
func (d *Device) Kernels() string { return d.tier.String() }

// Tier returns the tier of the kernels.
func (d *Device) Tier() Tier { return d.tier }

// Threads returns the number of workers.
func (d *Device) Threads() int { return d.pool.Threads() }

// Apart implements device.Properties.
func (d *Device) Apart() bool { return false }

// FreeMemory implements device.Properties.
func (d *Device) FreeMemory() int64 { return machine.ReadMemory().Available }

// Blocked implements device.Properties.
func (d *Device) Blocked(operand tensor.DType) tensor.DType { return gemm.Blocked(d.tier, operand) }

// A peak is measured for peakTime, and valid for peakAge: the clock varies.
const (
	peakTime = 100 * time.Millisecond
	peakAge  = 10 * time.Second
)

// peaks holds the latest peaks of this process, by peakKind, because a study or a search for a size opens many
// devices.
var peaks sync.Map

type peakKind struct {
	tier    isa.Tier
	operand tensor.DType
	threads int
}

type peak struct {
	at     time.Time
	gflops float64
}

// Peak implements device.Properties. It measures the peak, unless a device of this kind did in the last ten seconds.
func (d *Device) Peak(operand tensor.DType) float64 {
	kind := peakKind{d.tier, operand, d.Threads()}
	if p, ok := peaks.Load(kind); ok && time.Since(p.(peak).at) < peakAge {
		return p.(peak).gflops
	}
	gflops := gemm.Peak(d.tier, operand, d.pool, peakTime)
	peaks.Store(kind, peak{time.Now(), gflops})
	return gflops
}

// LogitBytes implements device.Properties: the default suits CPU caches.
func (d *Device) LogitBytes() int { return 0 }

// ProductScratch implements device.Properties.
func (d *Device) ProductScratch(operand tensor.DType) int {
	return gemm.Scratch(d.tier, d.Threads(), operand)
}

// AttentionScratch implements device.Properties.
func (d *Device) AttentionScratch(storage tensor.DType, tokens int, heads device.Heads, mask device.Mask) int {
	return flash.Scratch(d.tier, d.Threads(), storage, tokens, heads, mask, true)
}

// LinearAttentionScratch implements device.Properties. It depends on the heads and, with a delta rule, on the length.
func (d *Device) LinearAttentionScratch(storage tensor.DType, _, length int, heads device.Heads, _ bool) int {
	return flash.LinearScratch(d.tier, d.Threads(), storage, length, heads)
}

// ScratchBytes implements device.Properties.
func (d *Device) ScratchBytes() int {
	return d.gemm.ScratchBytes() + d.flash.ScratchBytes() + d.linear.ScratchBytes()
}
