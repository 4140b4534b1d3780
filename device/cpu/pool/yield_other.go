//go:build !linux

package pool

import "runtime"

// yield offers this CPU to other goroutines.
func yield() { runtime.Gosched() }
