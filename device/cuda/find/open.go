//go:build cuda && linux

package find

import (
	"fmt"
	"strings"

	"anneal/internal/dynlib"
)

// Open opens the first of the names ("libcuda.so.1") found by Places. hint ends the error if no library is found:
// what to install.
func Open(hint string, names ...string) (*dynlib.Library, error) {
	lib, faults := dynlib.Open(Places(names...)...)
	if lib == nil {
		return nil, fmt.Errorf("%s not found%s\n  %s, or set ANNEAL_CUDA_PATH to its directory",
			strings.Join(names, " or "), faults, hint)
	}
	return lib, nil
}
