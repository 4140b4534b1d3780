//go:build cuda && linux

package cuda

import (
	"runtime"

	"anneal/device/cuda/driver"
)

// A Side is a second queue of work on a card, for a library that sends and receives beside the kernels. Like the
// Device, it is used by one goroutine at a time, except for Occurred.
type Side struct {
	dev    *Device
	stream driver.Stream
	begun  driver.Event
	other  *driver.Driver // of the goroutine that calls Occurred
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

// Do calls f with the card's context. f queues work in the stream, or waits for what other ranks do.
func (s *Side) Do(f func(stream uintptr) error) error {
	var err error
	s.dev.do(func() error {
		err = f(uintptr(s.stream)) // which is no failure of the card
		return nil
	})
	if err == nil {
		err = s.dev.err
	}
	return err
}

// Apart is Do for a call that may never return, on a goroutine of its own.
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

// Follow has what is queued from now on wait for all kernels that were called before.
func (s *Side) Follow() {
	d := s.dev
	d.do(func() error {
		if err := d.driver.Record(s.begun, d.stream); err != nil {
			return err
		}
		return d.driver.Behind(s.stream, s.begun)
	})
}

// Set sets a mark behind all that is queued here.
func (s *Side) Set(m Mark) { s.dev.do(func() error { return s.dev.driver.Record(m, s.stream) }) }

// Precede has kernels that are called from now on wait for a mark. The host does not wait.
func (s *Side) Precede(m Mark) {
	s.dev.do(func() error { return s.dev.driver.Behind(s.dev.stream, m) })
}

// Finish waits for all that is queued here.
func (s *Side) Finish() error {
	s.dev.do(func() error { return s.dev.driver.Synchronize(s.stream) })
	return s.dev.err
}

// Occurred reports whether the card has come to a mark. Another goroutine may call it.
func (s *Side) Occurred(m Mark) (bool, error) {
	runtime.LockOSThread() // the context belongs to a thread
	defer runtime.UnlockOSThread()
	if err := s.other.SetCurrent(s.dev.context); err != nil {
		return false, err
	}
	return s.other.Occurred(m)
}

// Close frees the queue. Nothing may be in it.
func (s *Side) Close(marks []Mark) {
	s.dev.do(func() error {
		for _, m := range append(marks, s.begun) {
			s.dev.driver.DestroyEvent(m)
		}
		return s.dev.driver.DestroyStream(s.stream)
	})
}
