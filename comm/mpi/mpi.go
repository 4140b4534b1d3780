package mpi

import (
	"time"

	"anneal/comm"
)

// Options of a group. The zero value is usable.
type Options struct {
	Timeout time.Duration // how long a rank waits for another; 0 means ten minutes
}

// A Group is one rank's view of all ranks that a launcher started. It exists once in a process.
type Group interface {
	comm.Comm

	// SetTimeout changes Options.Timeout. No call may be in progress.
	SetTimeout(d time.Duration)

	// Info describes the library.
	Info() Info
}

// Info describes the MPI library of a group.
type Info struct {
	Launcher string   `json:"launcher"` // "Open MPI", "Hydra or PMI", "PMIx", or "none"
	Library  string   `json:"library"`  // what the library says of itself: "Open MPI v4.1.4"
	Path     string   `json:"path"`     // a bare name if the system's loader found it
	ABI      string   `json:"abi"`      // "Open MPI", "MPICH" or "MPI 5"
	Threads  string   `json:"threads"`  // the level of thread support: "funneled"
	Signals  []string `json:"signals"`  // signals whose handlers the library had replaced; Go's are restored
	Rank     int      `json:"rank"`
	Size     int      `json:"size"`
	Hosts    []string `json:"hosts"` // by rank
}

// Built reports whether this binary can use MPI.
func Built() bool { return built }
