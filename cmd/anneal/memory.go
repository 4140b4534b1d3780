package main

import (
	"runtime/debug"
	"strings"

	"anneal/internal/machine"
)

// availableMemory returns the bytes that this process may still take; 0 is unknown. Tests replace it to simulate small
// machines.
var availableMemory = func() int64 { return machine.ReadMemory().Available }

// autoSize is an amount of memory, or 0 for auto: as much as needed, but no more than is available.
type autoSize byteSize

func (a *autoSize) UnmarshalText(text []byte) error {
	if strings.EqualFold(string(text), "auto") {
		*a = 0
		return nil
	}
	return (*byteSize)(a).UnmarshalText(text)
}

const (
	programMemory = 16 << 20 // the program, outside the heap of the Go runtime
	processMemory = 40 << 20 // the least that any data command takes
	workerMemory  = 16 << 20 // a worker with its current texts
)

// limitHeap sets the memory limit of the garbage collector to bytes, until undo is called.
func limitHeap(bytes int64) (undo func()) {
	before := debug.SetMemoryLimit(bytes)
	return func() { debug.SetMemoryLimit(before) }
}
