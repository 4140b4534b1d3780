//go:build !linux

package filetest

import "time"

var begin = time.Now()

// threadTime is the time on a clock.
func threadTime() time.Duration { return time.Since(begin) }
