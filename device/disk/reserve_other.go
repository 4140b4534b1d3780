//go:build !linux

package disk

import "os"

// reserve makes a file n bytes longer.
func reserve(f *os.File, from, n int64) error { return f.Truncate(from + n) }
