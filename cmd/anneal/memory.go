package main

import (
	"runtime/debug"
	"strings"

	"anneal/internal/machine"
)

// availableMemory is how many bytes this process may still take; 0 is unknown. Tests put small machines in its place.
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
	programMemory = 16 << 20 // of the process, outside the heap of the Go runtime
	processMemory = 40 << 20 // what a data command takes whatever it does
	workerMemory  = 16 << 20 // a worker with texts in hand
)

// limitHeap has garbage collected before the heap grows beyond bytes, until undo is called.
func limitHeap(bytes int64) (undo func()) {
	before := debug.SetMemoryLimit(bytes)
	return func() { debug.SetMemoryLimit(before) }
}
