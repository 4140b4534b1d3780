package lab

import (
	"errors"

	"golang.org/x/sys/unix"
)

// limitMemory limits the data of a running process, and of the processes that it will start, and prevents core files.
func limitMemory(pid int, bytes int64) error {
	limits := []struct {
		resource int
		value    uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_DATA, uint64(bytes)}}
	if bytes == 0 {
		limits = limits[:1]
	}
	for _, l := range limits {
		err := unix.Prlimit(pid, l.resource, &unix.Rlimit{Cur: l.value, Max: l.value}, nil)
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended already
			return err
		}
	}
	return nil
}
