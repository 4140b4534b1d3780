//go:build !unix

package curate

import "time"

var processStart = time.Now()

// cpuTime is wall time where process time is unavailable.
func cpuTime() time.Duration { return time.Since(processStart) }
