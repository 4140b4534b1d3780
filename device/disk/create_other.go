//go:build !windows

package disk

import (
	"errors"
	"os"
)

// create makes an empty file without a name in a directory. The system frees it when it is closed.
func create(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".anneal-offload-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
