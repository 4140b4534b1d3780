//go:build (cuda || mpi) && linux

package dynlib

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// A Library usually stays open until the process ends, because a driver has its own threads and cannot be closed.
type Library struct {
	name string
	path string
	lib  uintptr
}

// Open opens the first library of the paths; a bare name is for the system's loader. If none opens it returns nil, and
// an indented line for each file that exists but cannot be loaded.
func Open(paths ...string) (lib *Library, faults string) {
	for _, path := range paths {
		lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return &Library{name: path[strings.LastIndexByte(path, '/')+1:], path: path, lib: lib}, ""
		}
		if strings.Contains(path, "/") {
			faults += "\n  " + err.Error()
		}
	}
	return nil, faults
}

// Path returns the path of the library, or a bare name if the system's loader found it.
func (l *Library) Path() string { return l.path }

// Variable returns the address of a variable or function, 0 if the library has none of that name.
func (l *Library) Variable(name string) uintptr {
	address, err := purego.Dlsym(l.lib, name)
	if err != nil {
		return 0
	}
	return address
}

// Close unloads a library, which must have no threads running.
func (l *Library) Close() error { return purego.Dlclose(l.lib) }

// A Function is the address of a C function.
type Function uintptr

// Functions looks up the names in order.
func (l *Library) Functions(into ...Named) error {
	for _, f := range into {
		address, err := purego.Dlsym(l.lib, f.Name)
		if err != nil {
			return fmt.Errorf("%s (%s) has no function %s: it is too old, or another library\n"+
				"  install a newer version", l.name, l.path, f.Name)
		}
		*f.To = Function(address)
	}
	return nil
}

// Named is the name of a function and the variable for its address.
type Named struct {
	Name string
	To   *Function
}

// Call calls a C function with integers and pointers, and returns its int result. Pointers must be passed as
// uintptr(unsafe.Pointer(p)) in the call itself, which keeps their targets in place.
//
//go:uintptrescapes
func (f Function) Call(args ...uintptr) int32 {
	r, _, _ := purego.SyscallN(uintptr(f), args...)
	return int32(r)
}

// CallWith is Call without allocations, for calls in every step. args, and everything that it points to, must be in
// memory that the caller keeps alive.
func (f Function) CallWith(args []uintptr) int32 {
	r, _, _ := purego.SyscallN(uintptr(f), args...)
	return int32(r)
}

// Text calls a C function that returns a string.
//
//go:uintptrescapes
func (f Function) Text(args ...uintptr) string {
	r, _, _ := purego.SyscallN(uintptr(f), args...)
	return String(r)
}

// String copies a C string.
func String(address uintptr) string {
	if address == 0 {
		return ""
	}
	p := *(**byte)(unsafe.Pointer(&address))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// CString returns s with a terminating 0, as in C.
func CString(s string) *byte { return unsafe.SliceData(append([]byte(s), 0)) }

// Into sets the function variable that to points to. The Go function calls the C function, also with arguments that
// are not integers or pointers, such as structures by value.
func (f Function) Into(to any) { purego.RegisterFunc(to, uintptr(f)) }
