//go:build cuda && linux

package driver

import (
	"unsafe"

	"anneal/internal/dynlib"
)

// A Module is code on a card, a CUmodule.
type Module uintptr

// A Function is a kernel of a module, a CUfunction.
type Function uintptr

type moduleFunctions struct {
	load, unload, function, attribute, launch dynlib.Function
}

func (m *moduleFunctions) names() []dynlib.Named {
	return []dynlib.Named{
		{Name: "cuModuleLoadData", To: &m.load},
		{Name: "cuModuleUnload", To: &m.unload},
		{Name: "cuModuleGetFunction", To: &m.function},
		{Name: "cuFuncSetAttribute", To: &m.attribute},
		{Name: "cuLaunchKernel", To: &m.launch},
	}
}

// Load loads a compiled module onto the card of the current context.
func (d *Driver) Load(image []byte) (m Module, err error) {
	err = d.check("cuModuleLoadData",
		d.module.load.Call(uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(unsafe.SliceData(image)))))
	return m, err
}

// Unload unloads a module.
func (d *Driver) Unload(m Module) error {
	return d.check("cuModuleUnload", d.module.unload.Call(uintptr(m)))
}

// Function returns a kernel by its name.
func (d *Driver) Function(m Module, name string) (f Function, err error) {
	err = d.check("cuModuleGetFunction",
		d.module.function.Call(uintptr(unsafe.Pointer(&f)), uintptr(m), uintptr(unsafe.Pointer(dynlib.CString(name)))))
	return f, err
}

// SetSharedLimit allows a kernel up to size bytes of dynamic shared memory. That is needed if these and the kernel's
// static arrays exceed 48 KiB.
func (d *Driver) SetSharedLimit(f Function, size int) error {
	const maxDynamicSharedSize = 8
	return d.check("cuFuncSetAttribute", d.module.attribute.Call(uintptr(f), maxDynamicSharedSize, uintptr(size)))
}

// Launch runs a kernel on grid[0]×grid[1]×grid[2] blocks of the given number of threads. args holds the address of
// each argument, in memory that the caller keeps alive.
func (d *Driver) Launch(f Function, grid [3]int, threads, shared int, s Stream, args *unsafe.Pointer) error {
	d.args = [11]uintptr{
		uintptr(f), uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]), uintptr(threads), 1, 1, uintptr(shared),
		uintptr(s), uintptr(unsafe.Pointer(args)), 0,
	}
	return d.check("cuLaunchKernel", d.module.launch.CallWith(d.args[:]))
}
