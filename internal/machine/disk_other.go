//go:build !(linux || darwin || freebsd || windows)

package machine

import (
	"errors"
	"os"
)

// FreeDisk is not supported on this system.
func FreeDisk(path string) (int64, error) {
	return 0, &os.PathError{Op: "free space", Path: path, Err: errors.ErrUnsupported}
}
