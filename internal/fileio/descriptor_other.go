//go:build !unix

package fileio

import "os"

// duplicate opens the path: only standard output has a name as an open file here.
func duplicate(_ int, path string) (*os.File, error) { return os.OpenFile(path, os.O_WRONLY, 0) }
