// Package machine asks the operating system about the computer: what the CPU is called, how much memory a process may
// still take, how much room a disk has. Where an answer is not to be had it is zero or "", never a guess.
//
// It imports nothing from this module.
package machine

// Memory is in bytes; zero is unknown.
type Memory struct {
	Total     int64 `json:"total_bytes"`     // of the machine, or the control group's limit where that is less
	Available int64 `json:"available_bytes"` // what this process can take before something is swapped out or killed
}
