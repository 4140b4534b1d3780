// Package machine queries the operating system about the computer: the name of the CPU, the memory available to the
// process, the free disk space. Unknown values are zero or "", never guesses.
//
// It imports nothing from this module.
package machine

// Memory is in bytes; zero means unknown.
type Memory struct {
	Total     int64 `json:"total_bytes"`     // of the machine, or the control group's limit if that is lower
	Available int64 `json:"available_bytes"` // bytes that this process can use before the system swaps or kills
}
