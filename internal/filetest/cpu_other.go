//go:build !linux

package filetest

import "time"

var begin = time.Now()

// threadTime returns wall-clock time.
func threadTime() time.Duration { return time.Since(begin) }
