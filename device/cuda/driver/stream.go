//go:build cuda && linux

package driver

import (
	"unsafe"

	"anneal/internal/dynlib"
)

// A Stream is a queue of work that is executed in order, a CUstream.
type Stream uintptr

// An Event is a point in a stream that can be waited for and has a time, a CUevent.
type Event uintptr

type streamFunctions struct {
	create, destroy, synchronize                                     dynlib.Function
	eventCreate, eventDestroy, eventRecord, eventWait, eventsElapsed dynlib.Function
}

func (s *streamFunctions) names() []dynlib.Named {
	return []dynlib.Named{
		{Name: "cuStreamCreate", To: &s.create},
		{Name: "cuStreamDestroy_v2", To: &s.destroy},
		{Name: "cuStreamSynchronize", To: &s.synchronize},
		{Name: "cuEventCreate", To: &s.eventCreate},
		{Name: "cuEventDestroy_v2", To: &s.eventDestroy},
		{Name: "cuEventRecord", To: &s.eventRecord},
		{Name: "cuEventSynchronize", To: &s.eventWait},
		{Name: "cuEventElapsedTime", To: &s.eventsElapsed},
	}
}

// NewStream creates a stream that does not wait for the default one.
func (d *Driver) NewStream() (s Stream, err error) {
	const nonBlocking = 1
	err = d.check("cuStreamCreate", d.stream.create.Call(uintptr(unsafe.Pointer(&s)), nonBlocking))
	return s, err
}

// DestroyStream ends a stream.
func (d *Driver) DestroyStream(s Stream) error {
	return d.check("cuStreamDestroy", d.stream.destroy.Call(uintptr(s)))
}

// Synchronize waits for all work of a stream.
func (d *Driver) Synchronize(s Stream) error {
	return d.check("cuStreamSynchronize", d.stream.synchronize.Call(uintptr(s)))
}

// NewEvent creates an event.
func (d *Driver) NewEvent() (e Event, err error) {
	err = d.check("cuEventCreate", d.stream.eventCreate.Call(uintptr(unsafe.Pointer(&e)), 0))
	return e, err
}

// DestroyEvent frees an event.
func (d *Driver) DestroyEvent(e Event) error {
	return d.check("cuEventDestroy", d.stream.eventDestroy.Call(uintptr(e)))
}

// Record records an event in a stream, after its current work.
func (d *Driver) Record(e Event, s Stream) error {
	return d.check("cuEventRecord", d.stream.eventRecord.Call(uintptr(e), uintptr(s)))
}

// WaitEvent waits until an event has occurred.
func (d *Driver) WaitEvent(e Event) error {
	return d.check("cuEventSynchronize", d.stream.eventWait.Call(uintptr(e)))
}

// Elapsed returns the seconds between two events that have occurred.
func (d *Driver) Elapsed(from, to Event) (float64, error) {
	var ms float32
	err := d.check("cuEventElapsedTime",
		d.stream.eventsElapsed.Call(uintptr(unsafe.Pointer(&ms)), uintptr(from), uintptr(to)))
	return float64(ms) / 1e3, err
}
