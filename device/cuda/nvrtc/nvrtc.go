//go:build cuda && linux

package nvrtc

import (
	"fmt"
	"strings"
	"unsafe"

	"anneal/device/cuda/find"
	"anneal/internal/dynlib"
)

// A Compiler is libnvrtc.
type Compiler struct {
	lib          *dynlib.Library
	major, minor int

	version, create, compile, destroy, codeSize, code, logSize, log, text dynlib.Function
}

// Open opens the compiler of CUDA major, the newest one whose code a driver of that version loads, or an older one.
func Open(major int) (*Compiler, error) {
	var names []string
	for v := major; v >= 12; v-- {
		names = append(names, fmt.Sprintf("libnvrtc.so.%d", v))
	}
	lib, err := find.Open(fmt.Sprintf("install it with `pip install nvidia-cuda-nvrtc-cu%d`, "+
		"or the CUDA toolkit", min(major, 12)), names...)
	if err != nil {
		return nil, fmt.Errorf("no kernel compiler: %w", err)
	}
	c := &Compiler{lib: lib}
	err = lib.Functions(
		dynlib.Named{Name: "nvrtcVersion", To: &c.version},
		dynlib.Named{Name: "nvrtcCreateProgram", To: &c.create},
		dynlib.Named{Name: "nvrtcCompileProgram", To: &c.compile},
		dynlib.Named{Name: "nvrtcDestroyProgram", To: &c.destroy},
		dynlib.Named{Name: "nvrtcGetCUBINSize", To: &c.codeSize},
		dynlib.Named{Name: "nvrtcGetCUBIN", To: &c.code},
		dynlib.Named{Name: "nvrtcGetProgramLogSize", To: &c.logSize},
		dynlib.Named{Name: "nvrtcGetProgramLog", To: &c.log},
		dynlib.Named{Name: "nvrtcGetErrorString", To: &c.text},
	)
	if err != nil {
		return nil, err
	}
	var ma, mi int32
	if err := c.check("nvrtcVersion",
		c.version.Call(uintptr(unsafe.Pointer(&ma)), uintptr(unsafe.Pointer(&mi)))); err != nil {
		return nil, err
	}
	c.major, c.minor = int(ma), int(mi)
	return c, nil
}

// Path returns where the compiler was found.
func (c *Compiler) Path() string { return c.lib.Path() }

// Version returns "12.9".
func (c *Compiler) Version() string { return fmt.Sprintf("%d.%d", c.major, c.minor) }

// Compile returns the code of a source text; name identifies it in errors. Options are those of nvcc; the
// architecture must be a real one, such as --gpu-architecture=sm_90. An error contains the compiler's messages.
func (c *Compiler) Compile(name, text string, options ...string) ([]byte, error) {
	var flags []*byte // C strings: the arguments and their targets must not move
	for _, o := range options {
		flags = append(flags, dynlib.CString(o))
	}
	var program uintptr
	if err := c.check("nvrtcCreateProgram", c.create.Call(uintptr(unsafe.Pointer(&program)),
		uintptr(unsafe.Pointer(dynlib.CString(text))), uintptr(unsafe.Pointer(dynlib.CString(name))), 0, 0,
		0)); err != nil {
		return nil, err
	}
	defer c.destroy.Call(uintptr(unsafe.Pointer(&program)))
	if err := c.check("nvrtcCompileProgram",
		c.compile.Call(program, uintptr(len(flags)), uintptr(unsafe.Pointer(unsafe.SliceData(flags))))); err != nil {
		return nil, fmt.Errorf("%s with %s: %w\n%s", name, strings.Join(options, " "), err, c.programLog(program))
	}
	var size uint64
	if err := c.check("nvrtcGetCUBINSize", c.codeSize.Call(program, uintptr(unsafe.Pointer(&size)))); err != nil {
		return nil, err
	}
	code := make([]byte, max(size, 1))
	if err := c.check("nvrtcGetCUBIN",
		c.code.Call(program, uintptr(unsafe.Pointer(unsafe.SliceData(code))))); err != nil {
		return nil, err
	}
	return code[:size], nil
}

func (c *Compiler) programLog(program uintptr) string {
	var size uint64
	if c.logSize.Call(program, uintptr(unsafe.Pointer(&size))) != 0 || size == 0 {
		return ""
	}
	log := make([]byte, size)
	c.log.Call(program, uintptr(unsafe.Pointer(unsafe.SliceData(log))))
	return strings.TrimRight(string(log), "\x00\n")
}

func (c *Compiler) check(call string, result int32) error {
	if result == 0 {
		return nil
	}
	return fmt.Errorf("%s (error %d in %s, NVRTC %s)", c.text.Text(uintptr(result)), result, call, c.Version())
}
