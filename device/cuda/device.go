//go:build cuda && linux

package cuda

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"anneal/device"
	"anneal/device/cuda/cublaslt"
	"anneal/device/cuda/driver"
	"anneal/device/cuda/nvrtc"
)

// A Device is one card. It implements device.Device.
type Device struct {
	driver   *driver.Driver
	compiler *nvrtc.Compiler
	card     Card
	context  driver.Context
	stream   driver.Stream

	modules map[moduleKey]driver.Module
	kernels map[kernelKey]*kernel
	call    call

	dynamic8  driver.Pointer // of AdamW8: the numbers of its codes
	attention attentionTables
	blas      *cublaslt.Library
	plans     map[cublaslt.Problem]*cublaslt.Plan // nil for unsupported problems

	memory  memory
	profile *profile // nil unless requested
	err     error    // the first failure
	closing sync.Once
}

var _ device.Device = (*Device)(nil)

// Open returns card number i of this machine.
func Open(i int) (device.Device, error) { return New(i) }

// OpenAt returns the card for one of the ranks of this machine, counted from 0: the card with the rank's number, or
// the only card that the launcher makes visible to this process.
func OpenAt(place int) (device.Device, error) {
	drv, err := driver.Open()
	if err != nil {
		return nil, err
	}
	if n, err := drv.Count(); err == nil && n == 1 {
		place = 0
	}
	return Open(place)
}

// New returns card number i of this machine as its concrete type.
func New(i int) (*Device, error) {
	drv, err := driver.Open()
	if err != nil {
		return nil, err
	}
	card, err := findCard(drv, i)
	if err != nil {
		return nil, err
	}
	compiler, err := nvrtc.Open(drv.Major())
	if err != nil {
		return nil, err
	}
	blas, err := cublaslt.Open(drv.Major())
	if err != nil {
		return nil, err
	}
	d := &Device{
		driver: drv, compiler: compiler, blas: blas, card: card,
		modules: map[moduleKey]driver.Module{}, kernels: map[kernelKey]*kernel{},
		plans: map[cublaslt.Problem]*cublaslt.Plan{},
	}
	if os.Getenv("ANNEAL_CUDA_PROFILE") != "" {
		d.profile = &profile{times: map[string]*kernelTime{}}
	}
	if d.context, err = drv.Retain(card.handle); err != nil {
		return nil, fmt.Errorf("cannot use %s: %w\n  check with nvidia-smi whether another process holds it",
			card.Name, err)
	}
	d.do(func() (err error) {
		d.stream, err = drv.NewStream()
		return err
	})
	d.do(d.blas.Start)
	d.do(d.memory.open(d))
	if err := d.err; err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close implements device.Device. Arenas must have been closed before.
func (d *Device) Close() {
	d.closing.Do(func() {
		d.Wait()
		if d.profile != nil {
			d.profile.print(os.Stderr)
		}
		d.err = nil // a lost card's memory is lost anyway
		d.do(func() error {
			d.memory.close(d.driver)
			for _, p := range d.plans {
				if p != nil {
					d.blas.Free(p)
				}
			}
			d.blas.Close()
			for _, m := range d.modules {
				d.driver.Unload(m)
			}
			if d.stream != 0 {
				d.driver.DestroyStream(d.stream)
			}
			return nil
		})
		d.driver.Release(d.card.handle)
		d.err = errClosed
	})
}

var errClosed = fmt.Errorf("cuda: the device was closed")

// Wait implements device.Memory.
func (d *Device) Wait() error {
	d.do(func() error {
		if err := d.driver.Synchronize(d.stream); err != nil || d.profile == nil {
			return err
		}
		return d.profile.read(d.driver)
	})
	return d.err
}

// do calls the driver with the card's context, unless the device has failed. f may return the failure of earlier
// work: a card reports failures at a later call.
func (d *Device) do(f func() error) {
	if d.err != nil {
		return
	}
	runtime.LockOSThread() // the context belongs to a thread
	defer runtime.UnlockOSThread()
	err := d.driver.SetCurrent(d.context)
	if err == nil {
		err = f()
	}
	d.fail(err)
}

// fail records the first failure.
func (d *Device) fail(err error) {
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("%s: %w", d.card.Name, err)
	}
}
