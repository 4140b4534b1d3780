//go:build cuda && linux

package cuda

import (
	"fmt"

	"anneal/device/cuda/cublaslt"
	"anneal/device/cuda/driver"
	"anneal/device/cuda/find"
	"anneal/device/cuda/nvrtc"
)

// Examine checks everything that Open needs, and continues if something is missing.
func Examine() Report {
	r := Report{Built: true}
	major := 12
	drv, err := driver.Open()
	if err != nil {
		r.add("driver", "", "", err)
	} else {
		r.add("driver", "CUDA "+drv.Version(), drv.Path(), nil)
		major = drv.Major()
	}
	if c, err := nvrtc.Open(major); err != nil {
		r.add("nvrtc", "", "", err)
	} else {
		r.add("nvrtc", c.Version(), c.Path(), nil)
	}
	if l, err := cublaslt.Open(major); err != nil {
		r.add("cublaslt", "", "", err)
	} else {
		r.add("cublaslt", l.Version(), l.Path(), nil)
	}
	if drv != nil {
		n, _ := drv.Count()
		for i := range n {
			r.Cards = append(r.Cards, examineCard(drv, i))
		}
	}
	lib, err := find.Open("for several GPUs, install it with `pip install nvidia-nccl-cu12`", "libnccl.so.2")
	switch {
	case err == nil:
		r.add("nccl", "2", lib.Path(), nil)
	case len(r.Cards) > 1:
		r.add("nccl", "", "", err)
	}
	return r
}

func (r *Report) add(name, version, path string, err error) {
	l := Library{Name: name, Version: version, Path: path}
	if err != nil {
		l.Fault = err.Error()
	}
	r.Libraries = append(r.Libraries, l)
}

func examineCard(drv *driver.Driver, i int) Found {
	c, err := findCard(drv, i)
	f := Found{
		Name: c.Name, Capability: fmt.Sprintf("%d.%d", c.Capability/10, c.Capability%10), Memory: c.Memory,
		Bandwidth: c.Bandwidth,
	}
	f.BF16, _ = c.Peak()
	if err == nil {
		f.Free, err = freeMemory(drv, c)
	}
	if err != nil {
		f.Fault = err.Error()
	}
	return f
}

// freeMemory returns the free memory of a card without an open device.
func freeMemory(drv *driver.Driver, c Card) (int, error) {
	context, err := drv.Retain(c.handle)
	if err != nil {
		return 0, err
	}
	defer drv.Release(c.handle)
	d := Device{driver: drv, card: c, context: context}
	free := 0
	d.do(func() (err error) {
		free, _, err = drv.MemInfo()
		return err
	})
	return free, d.err
}
