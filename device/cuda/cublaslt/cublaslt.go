//go:build cuda && linux

package cublaslt

import (
	"fmt"
	"unsafe"

	"anneal/device/cuda/find"
	"anneal/internal/dynlib"
)

// A Library is libcublasLt with a handle.
type Library struct {
	lib     *dynlib.Library
	handle  uintptr
	version int

	args    [16]uintptr // arguments of the current call, and values that they point to
	numbers [3]uint64

	create, destroy, getVersion                                             dynlib.Function
	descCreate, descDestroy, descSet                                        dynlib.Function
	layoutCreate, layoutDestroy                                             dynlib.Function
	preferenceCreate, preferenceDestroy, preferenceSet, heuristic, multiply dynlib.Function
}

// Open opens the library of CUDA major, or of an earlier version. The card's context must be current for this and all
// later calls.
func Open(major int) (*Library, error) {
	var names []string
	for v := major; v >= 12; v-- {
		names = append(names, fmt.Sprintf("libcublasLt.so.%d", v))
	}
	lib, err := find.Open("install it with `pip install nvidia-cublas-cu12`, or the CUDA toolkit", names...)
	if err != nil {
		return nil, fmt.Errorf("no matrix product library: %w", err)
	}
	l := &Library{lib: lib}
	err = lib.Functions(
		dynlib.Named{Name: "cublasLtCreate", To: &l.create},
		dynlib.Named{Name: "cublasLtDestroy", To: &l.destroy},
		dynlib.Named{Name: "cublasLtGetVersion", To: &l.getVersion},
		dynlib.Named{Name: "cublasLtMatmulDescCreate", To: &l.descCreate},
		dynlib.Named{Name: "cublasLtMatmulDescDestroy", To: &l.descDestroy},
		dynlib.Named{Name: "cublasLtMatmulDescSetAttribute", To: &l.descSet},
		dynlib.Named{Name: "cublasLtMatrixLayoutCreate", To: &l.layoutCreate},
		dynlib.Named{Name: "cublasLtMatrixLayoutDestroy", To: &l.layoutDestroy},
		dynlib.Named{Name: "cublasLtMatmulPreferenceCreate", To: &l.preferenceCreate},
		dynlib.Named{Name: "cublasLtMatmulPreferenceDestroy", To: &l.preferenceDestroy},
		dynlib.Named{Name: "cublasLtMatmulPreferenceSetAttribute", To: &l.preferenceSet},
		dynlib.Named{Name: "cublasLtMatmulAlgoGetHeuristic", To: &l.heuristic},
		dynlib.Named{Name: "cublasLtMatmul", To: &l.multiply},
	)
	if err != nil {
		return nil, err
	}
	l.version = int(l.getVersion.Call())
	return l, nil
}

// Start creates the handle that Plan and Run need.
func (l *Library) Start() error {
	return check("cublasLtCreate", l.create.Call(uintptr(unsafe.Pointer(&l.handle))))
}

// Close frees the handle.
func (l *Library) Close() {
	if l.handle != 0 {
		l.destroy.Call(l.handle)
		l.handle = 0
	}
}

// Path returns where the library was found.
func (l *Library) Path() string { return l.lib.Path() }

// Version returns "12.9.1".
func (l *Library) Version() string {
	return fmt.Sprintf("%d.%d.%d", l.version/10000, l.version/100%100, l.version%100)
}

func check(call string, result int32) error {
	if result == 0 {
		return nil
	}
	return fmt.Errorf("cuBLASLt: %s (error %d in %s)", statuses[result], result, call)
}

// statuses describes the values of cublasStatus_t; only later versions of the library can do so.
var statuses = map[int32]string{
	1: "not initialized", 3: "out of memory", 7: "invalid value", 8: "not supported by this card",
	11: "memory mapping failed", 13: "execution failed", 14: "internal error", 15: "not supported", 16: "license error",
}
