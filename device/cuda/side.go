//go:build cuda && linux

package cuda

import (
	"runtime"

	"anneal/device/cuda/driver"
)

// A Side is a second queue of work on a card, for a library that communicates while kernels run. Like the Device, it
// is used by one goroutine at a time, except for Occurred.
type Side struct {
	dev    *Device
	stream driver.Stream
	begun  driver.Event
	other  *driver.Driver // for the goroutine that calls Occurred
}

// A Mark is a point in the queue of a Side.
type Mark = driver.Event

// NewSide returns a new queue.
func (d *Device) NewSide() (*Side, error) {
	other, err := driver.Open()
	if err != nil {
		return nil, err
	}
	s := &Side{dev: d, other: other}
	d.do(func() (err error) {
		if s.stream, err = d.driver.NewStream(); err == nil {
			s.begun, err = d.driver.NewEvent()
		}
		return err
	})
	return s, d.err
}

// Do calls f with the card's context. f queues work in the stream, or waits for other ranks.
func (s *Side) Do(f func(stream uintptr) error) error {
	var err error
	s.dev.do(func() error {
		err = f(uintptr(s.stream)) // an error of f is not a failure of the card
		return nil
	})
	if err == nil {
		err = s.dev.err
	}
	return err
}

// Apart is Do for a call that may never return; the caller runs it in a separate goroutine.
func (s *Side) Apart(f func(stream uintptr) error) error {
	own, err := driver.Open()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the context belongs to a thread
	defer runtime.UnlockOSThread()
	if err := own.SetCurrent(s.dev.context); err != nil {
		return err
	}
	return f(uintptr(s.stream))
}

// NewMark creates a mark. It may be used again and again.
func (s *Side) NewMark() (m Mark, err error) {
	s.dev.do(func() (err error) {
		m, err = s.dev.driver.NewEvent()
		return err
	})
	return m, s.dev.err
}

// Follow makes work that is queued here from now on wait for all kernels called before.
func (s *Side) Follow() {
	d := s.dev
	d.do(func() error {
		if err := d.driver.Record(s.begun, d.stream); err != nil {
			return err
		}
		return d.driver.Behind(s.stream, s.begun)
	})
}

// Set sets a mark after all work queued here.
func (s *Side) Set(m Mark) { s.dev.do(func() error { return s.dev.driver.Record(m, s.stream) }) }

// Precede makes kernels that are called from now on wait for a mark. The host does not wait.
func (s *Side) Precede(m Mark) {
	s.dev.do(func() error { return s.dev.driver.Behind(s.dev.stream, m) })
}

// Finish waits for all work queued here.
func (s *Side) Finish() error {
	s.dev.do(func() error { return s.dev.driver.Synchronize(s.stream) })
	return s.dev.err
}

// Occurred reports whether the card has reached a mark. Another goroutine may call it.
func (s *Side) Occurred(m Mark) (bool, error) {
	runtime.LockOSThread() // the context belongs to a thread
	defer runtime.UnlockOSThread()
	if err := s.other.SetCurrent(s.dev.context); err != nil {
		return false, err
	}
	return s.other.Occurred(m)
}

// Close frees the queue, which must be empty.
func (s *Side) Close(marks []Mark) {
	s.dev.do(func() error {
		for _, m := range append(marks, s.begun) {
			s.dev.driver.DestroyEvent(m)
		}
		return s.dev.driver.DestroyStream(s.stream)
	})
}
