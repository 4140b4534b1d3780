package tfevents

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// FileName returns the name of a new event file in a directory with the given files. TensorBoard reads all files of a
// directory with "tfevents" in their names, in the order of the names, so the new one is the last, whatever the clock
// says.
func FileName(now time.Time, files []string) string {
	const prefix = "events.out.tfevents."
	second := now.Unix()
	for _, name := range files {
		var before int64
		if _, err := fmt.Sscanf(name, prefix+"%d.", &before); err == nil && before < 9_999_999_999 {
			second = max(second, before+1)
		}
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	return fmt.Sprintf(prefix+"%010d.%s.%d.%09d", second, strings.ReplaceAll(host, "/", "_"), os.Getpid(),
		now.Nanosecond())
}

// Version returns the record with which every file begins.
func Version(wall time.Time) []byte {
	e := event(wall)
	e.string(3, "brain.Event:2")
	return record(e)
}

// Start returns the record of a session that begins before the given step. TensorBoard discards that step and later
// ones of earlier files in the directory, so that a run that was rewound has no step twice.
func Start(wall time.Time, step int64) []byte {
	const sessionStart = 1
	var session message
	session.int(1, sessionStart)
	e := event(wall)
	e.int(2, step)
	e.bytes(7, session)
	return record(e)
}

// Summary returns the record of a step's values.
func Summary(wall time.Time, step int64, values ...Value) []byte {
	var summary message
	for _, v := range values {
		summary.bytes(1, v)
	}
	e := event(wall)
	e.int(2, step)
	e.bytes(5, summary)
	return record(e)
}

func event(wall time.Time) (e message) {
	e.double(1, float64(wall.UnixNano())/1e9)
	return e
}
