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
	streamWait, eventQuery                                           dynlib.Function
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
		{Name: "cuStreamWaitEvent", To: &s.streamWait},
		{Name: "cuEventQuery", To: &s.eventQuery},
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
	d.args[0] = uintptr(s)
	return d.check("cuStreamSynchronize", d.stream.synchronize.CallWith(d.args[:1]))
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
	d.args = [11]uintptr{uintptr(e), uintptr(s)}
	return d.check("cuEventRecord", d.stream.eventRecord.CallWith(d.args[:2]))
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

// Behind makes work that is queued in a stream from now on wait for the last recording of an event.
func (d *Driver) Behind(s Stream, e Event) error {
	d.args = [11]uintptr{uintptr(s), uintptr(e)}
	return d.check("cuStreamWaitEvent", d.stream.streamWait.CallWith(d.args[:3]))
}

// notReady is the result of cuEventQuery for an event that has not occurred.
const notReady = 600

// Occurred reports whether an event has occurred since it was last recorded.
func (d *Driver) Occurred(e Event) (bool, error) {
	d.args[0] = uintptr(e)
	result := d.stream.eventQuery.CallWith(d.args[:1])
	if result == notReady {
		return false, nil
	}
	return true, d.check("cuEventQuery", result)
}
