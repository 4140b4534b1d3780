package cpu

import (
	"runtime"

	"anneal/device"
	"anneal/device/cpu/flash"
	"anneal/device/cpu/gemm"
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/internal/isa"
	"anneal/tensor"
)

// A Device computes with one tier of kernels on a fixed number of threads. It implements device.Device.
type Device struct {
	device.Host // its memory

	tier   isa.Tier
	pool   *pool.Pool
	gemm   *gemm.Engine
	flash  *flash.Engine
	linear *flash.Linear
	f32    *engine[float32]
	f64    *engine[float64] // the reference mode
	raw    raw

	stochastic     stochastic
	quantizeBlocks quantizeBlocks
	randoms        []randomRow // of each worker
}

var _ device.Device = (*Device)(nil)

// Tier is a set of kernels for one level of instructions. Its String is the name that ANNEAL_CPU takes.
type Tier = isa.Tier

// Generic is the tier of portable Go, which every machine supports.
const Generic = isa.Generic

// Tiers returns every tier that this machine supports, best first.
func Tiers() []Tier { return isa.Tiers() }

// New returns a device of this machine's tier (see isa.Choose) with one worker per CPU that Go may use, or threads
// workers if that is fewer. More workers than CPUs would only cost time and memory. Results do not depend on the
// number.
func New(threads int) (*Device, error) {
	tier, err := isa.Choose()
	if err != nil {
		return nil, err
	}
	return NewTier(tier, min(threads, runtime.GOMAXPROCS(0))), nil
}

// NewTier returns a device of the given tier, which the machine must support.
func NewTier(tier Tier, threads int) *Device { return newDevice(tier, pool.New(threads)) }

// Simulate returns a device of this machine's tier that simulates one or more worker threads on the caller. BeginStep
// and EndStep mark the work to simulate.
func Simulate(threads int) (*Device, error) {
	tier, err := isa.Choose()
	if err != nil {
		return nil, err
	}
	return newDevice(tier, pool.Simulate(threads)), nil
}

// BeginStep begins a step of a simulation, and EndStep returns the time that such steps would take; see package pool.
func (d *Device) BeginStep()               { d.pool.BeginStep() }
func (d *Device) EndStep() pool.Simulation { return d.pool.EndStep() }

func newDevice(tier isa.Tier, p *pool.Pool) *Device {
	return &Device{
		tier:   tier,
		pool:   p,
		gemm:   gemm.New(tier, p),
		flash:  flash.New(tier, p),
		linear: flash.NewLinear(tier, p),
		f32:    newEngine(p, vec.Float32(tier)),
		f64:    newEngine(p, vec.Float64()),
		raw:    raw{pool: p},
	}
}

// Close implements device.Device.
func (d *Device) Close() {
	d.pool.Close()
	d.gemm.Close()
	d.flash.Close()
	d.linear.Close()
}

// MatMul implements device.Device; see package gemm.
func (d *Device) MatMul(dst, a, b *tensor.Tensor, form device.Form, opt device.MatMulOptions) {
	d.gemm.MatMul(dst, a, b, form, opt)
}

// Attention implements device.Device; see package flash.
func (d *Device) Attention(out, lse, qkv *tensor.Tensor, heads device.Heads, mask device.Mask) {
	d.flash.Forward(out, lse, qkv, heads, mask)
}

// AttentionCached implements device.Device; see package flash.
func (d *Device) AttentionCached(out, qkv *tensor.Tensor, cache *device.Cache, first int, heads device.Heads,
	mask device.Mask) {
	d.flash.ForwardCached(out, qkv, cache, first, heads, mask)
}

// AttentionGrad implements device.Device; see package flash.
func (d *Device) AttentionGrad(dqkv, dout, out, lse, qkv *tensor.Tensor, heads device.Heads, mask device.Mask) {
	d.flash.Backward(dqkv, dout, out, lse, qkv, heads, mask)
}

// LinearAttention implements device.Device; see package flash.
func (d *Device) LinearAttention(out, norm, qkv, gates *tensor.Tensor, heads device.Heads, mask device.Mask) {
	d.linear.Forward(out, norm, qkv, gates, heads, mask)
}

// LinearAttentionGrad implements device.Device; see package flash.
func (d *Device) LinearAttentionGrad(dqkv, dgates, dout, out, norm, qkv, gates *tensor.Tensor, heads device.Heads,
	mask device.Mask) {
	d.linear.Backward(dqkv, dgates, dout, out, norm, qkv, gates, heads, mask)
}

// LinearAttentionCached implements device.Device; see package flash.
func (d *Device) LinearAttentionCached(out, qkv, gates *tensor.Tensor, cache *device.Cache, first int,
	heads device.Heads) {
	d.linear.Cached(out, qkv, gates, cache, first, heads)
}
