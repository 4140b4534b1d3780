package cpu

import (
	"fmt"

	"anneal/device/cpu/isa"
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
)

// A Device computes with one tier of kernels on a fixed number of threads. It implements device.Device.
type Device struct {
	tier isa.Tier
	pool *pool.Pool
	f32  *engine[float32]
	f64  *engine[float64] // the reference mode
	raw  raw
}

// New returns a device of this machine's tier (see isa.Choose); threads 0 means one per CPU that Go may use.
func New(threads int) (*Device, error) {
	tier, err := isa.Choose()
	if err != nil {
		return nil, err
	}
	return NewTier(tier, threads), nil
}

// NewTier returns a device of the given tier, which the machine must run.
func NewTier(tier isa.Tier, threads int) *Device {
	p := pool.New(threads)
	d := &Device{tier: tier, pool: p, f32: newEngine(p, vec.Float32(tier)), f64: newEngine(p, vec.Float64())}
	d.raw.d = d
	return d
}

// Name implements device.Device.
func (d *Device) Name() string {
	plural := "s"
	if d.Threads() == 1 {
		plural = ""
	}
	return fmt.Sprintf("cpu %v, %d thread%s", d.tier, d.Threads(), plural)
}

// Tier returns the tier of the kernels.
func (d *Device) Tier() isa.Tier { return d.tier }

// Threads returns the number of workers.
func (d *Device) Threads() int { return d.pool.Threads() }

// Pool returns the workers, for other work on the host that should share them.
func (d *Device) Pool() *pool.Pool { return d.pool }

// Close implements device.Device.
func (d *Device) Close() { d.pool.Close() }
