//go:build cuda && linux

package driver

import (
	"bytes"
	"fmt"
	"unsafe"

	"anneal/device/cuda/find"
	"anneal/internal/dynlib"
)

// A Driver is libcuda.so.1, which is part of the NVIDIA driver. Its methods must be called from one goroutine at a
// time.
type Driver struct {
	lib     *dynlib.Library
	version int

	initialise, driverGetVersion, deviceGetCount, deviceGet dynlib.Function
	deviceGetName, deviceGetAttribute, deviceTotalMem       dynlib.Function
	primaryCtxRetain, primaryCtxRelease, ctxSetCurrent      dynlib.Function
	getErrorName, getErrorString                            dynlib.Function

	args [11]uintptr // of the current call

	memory memoryFunctions
	stream streamFunctions
	module moduleFunctions
}

// Oldest is the oldest supported version of the driver.
const Oldest = 12000

// Open opens the driver and initialises it.
func Open() (*Driver, error) {
	lib, err := find.Open("install NVIDIA's driver, version 525 or later", "libcuda.so.1")
	if err != nil {
		return nil, fmt.Errorf("no NVIDIA driver: %w", err)
	}
	d := &Driver{lib: lib}
	// The version comes first: an old driver may lack some of the functions.
	if err := lib.Functions(dynlib.Named{Name: "cuDriverGetVersion", To: &d.driverGetVersion}); err != nil {
		return nil, err
	}
	var version int32
	d.driverGetVersion.Call(uintptr(unsafe.Pointer(&version)))
	if d.version = int(version); d.version < Oldest {
		return nil, fmt.Errorf("the NVIDIA driver (%s) supports CUDA %s, but %s is needed\n"+
			"  install a driver of version 525 or later", lib.Path(), d.Version(), Version(Oldest))
	}
	if err := lib.Functions(d.functions()...); err != nil {
		return nil, err
	}
	if err := d.check("cuInit", d.initialise.Call(0)); err != nil {
		return nil, fmt.Errorf("%w\n  check whether nvidia-smi works: after an update of the driver, "+
			"the machine needs a restart", err)
	}
	return d, nil
}

func (d *Driver) functions() []dynlib.Named {
	all := []dynlib.Named{
		{Name: "cuInit", To: &d.initialise},
		{Name: "cuDeviceGetCount", To: &d.deviceGetCount},
		{Name: "cuDeviceGet", To: &d.deviceGet},
		{Name: "cuDeviceGetName", To: &d.deviceGetName},
		{Name: "cuDeviceGetAttribute", To: &d.deviceGetAttribute},
		{Name: "cuDeviceTotalMem_v2", To: &d.deviceTotalMem},
		{Name: "cuDevicePrimaryCtxRetain", To: &d.primaryCtxRetain},
		{Name: "cuDevicePrimaryCtxRelease_v2", To: &d.primaryCtxRelease},
		{Name: "cuCtxSetCurrent", To: &d.ctxSetCurrent},
		{Name: "cuGetErrorName", To: &d.getErrorName},
		{Name: "cuGetErrorString", To: &d.getErrorString},
	}
	all = append(all, d.memory.names()...)
	all = append(all, d.stream.names()...)
	return append(all, d.module.names()...)
}

// Path returns where the driver was found.
func (d *Driver) Path() string { return d.lib.Path() }

// Version returns the CUDA version that the driver supports, such as "12.4".
func (d *Driver) Version() string { return Version(d.version) }

// Major returns the first number of Version.
func (d *Driver) Major() int { return d.version / 1000 }

// Version formats a version number of the driver, such as 12040, as "12.4".
func Version(n int) string { return fmt.Sprintf("%d.%d", n/1000, n%1000/10) }

// An Error is a call that failed.
type Error struct {
	Call       string // the C function
	Code       int    // CUresult
	Name, Text string // of the code: CUDA_ERROR_OUT_OF_MEMORY, "out of memory"
}

// OutOfMemory is the code of an allocation that does not fit.
const OutOfMemory = 2

// Error implements error.
func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("CUDA error %d in %s", e.Code, e.Call)
	}
	return fmt.Sprintf("CUDA: %s (%s, error %d in %s)", e.Text, e.Name, e.Code, e.Call)
}

// check converts a result to an error, nil for success.
func (d *Driver) check(call string, result int32) error {
	if result == 0 {
		return nil
	}
	e := &Error{Call: call, Code: int(result)}
	var name, text uintptr
	if d.getErrorName.Call(uintptr(result), uintptr(unsafe.Pointer(&name))) == 0 {
		e.Name = dynlib.String(name)
	}
	if d.getErrorString.Call(uintptr(result), uintptr(unsafe.Pointer(&text))) == 0 {
		e.Text = dynlib.String(text)
	}
	return e
}

// A Card is the number of a GPU, a CUdevice.
type Card int32

// Count returns the number of cards.
func (d *Driver) Count() (int, error) {
	var n int32
	err := d.check("cuDeviceGetCount", d.deviceGetCount.Call(uintptr(unsafe.Pointer(&n))))
	return int(n), err
}

// Card returns card i of Count.
func (d *Driver) Card(i int) (c Card, err error) {
	err = d.check("cuDeviceGet", d.deviceGet.Call(uintptr(unsafe.Pointer(&c)), uintptr(i)))
	return c, err
}

// Name returns the name of a card: "NVIDIA H100 80GB HBM3".
func (d *Driver) Name(c Card) (string, error) {
	var name [256]byte
	err := d.check("cuDeviceGetName",
		d.deviceGetName.Call(uintptr(unsafe.Pointer(&name)), uintptr(len(name)), uintptr(c)))
	text, _, _ := bytes.Cut(name[:], []byte{0})
	return string(text), err
}

// TotalMemory returns the bytes of memory of a card.
func (d *Driver) TotalMemory(c Card) (int, error) {
	var n uint64
	err := d.check("cuDeviceTotalMem", d.deviceTotalMem.Call(uintptr(unsafe.Pointer(&n)), uintptr(c)))
	return int(n), err
}

// An Attribute is a property of a card, a CUdevice_attribute.
type Attribute int

// The attributes that are used.
const (
	ClockRate       Attribute = 13 // kHz
	Multiprocessors Attribute = 16
	MemoryClockRate Attribute = 36 // kHz
	MemoryBusWidth  Attribute = 37 // bits
	CapabilityMajor Attribute = 75
	CapabilityMinor Attribute = 76
)

// Attribute returns an attribute of a card.
func (d *Driver) Attribute(c Card, a Attribute) (int, error) {
	var n int32
	err := d.check("cuDeviceGetAttribute",
		d.deviceGetAttribute.Call(uintptr(unsafe.Pointer(&n)), uintptr(a), uintptr(c)))
	return int(n), err
}

// A Context holds a process's resources on a card, a CUcontext: memory, modules, streams.
type Context uintptr

// Retain returns the primary context of a card, which libraries share.
func (d *Driver) Retain(c Card) (ctx Context, err error) {
	err = d.check("cuDevicePrimaryCtxRetain", d.primaryCtxRetain.Call(uintptr(unsafe.Pointer(&ctx)), uintptr(c)))
	return ctx, err
}

// Release releases the primary context.
func (d *Driver) Release(c Card) error {
	return d.check("cuDevicePrimaryCtxRelease", d.primaryCtxRelease.Call(uintptr(c)))
}

// SetCurrent makes ctx the context of this thread of the operating system.
func (d *Driver) SetCurrent(ctx Context) error {
	d.args[0] = uintptr(ctx)
	return d.check("cuCtxSetCurrent", d.ctxSetCurrent.CallWith(d.args[:1]))
}
