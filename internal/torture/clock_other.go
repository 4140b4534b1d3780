//go:build !linux

package torture

import "time"

func cpuClock(int) func() time.Duration { return wallClock() }
