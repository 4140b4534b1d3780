//go:build !unix && !windows

package fileio

import "os"

func openReading(path string) (*os.File, error) { return os.Open(path) }
