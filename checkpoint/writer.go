package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"

	"anneal/internal/machine"
)

// Writer writes one process's parts of checkpoints that several processes write together; see [Store.Begin]. Every
// process has one, with a different number, from 0 up. Its methods must be called from one goroutine. Close it at the
// end.
type Writer struct {
	Root        string // the directory of the store
	Number      int
	Synchronous bool // as in Options

	fs filesystem // nil means disk
	background
}

// Write begins to write this process's tensors, or parts of tensors, to dir, the result of Begin, and returns; a
// goroutine takes a snapshot of them, as in [Store.Save], and writes it. No two processes may write the same element.
// A process without tensors writes an empty part. Write waits for the previous one, and returns its error without
// writing anything if it failed. The part is complete when Wait returns nil.
func (w *Writer) Write(dir string, tensors []Tensor) error {
	if err := w.Wait(); err != nil {
		return err
	}
	if err := checkTensors(tensors); err != nil {
		return err
	}
	p, err := plan(tensors, fmt.Sprintf(".r%05d", w.Number))
	if err != nil {
		return err
	}
	fail := func(err error) error { return fmt.Errorf("checkpoint: %s: part %d not saved: %w", dir, w.Number, err) }
	if err := space(machine.FreeDisk, w.Root, p.bytes()); err != nil {
		return fail(err)
	}
	if w.fs == nil {
		w.fs = disk{}
	}
	copying, err := w.copyOf(p, w.Synchronous)
	if err != nil {
		return fail(err)
	}
	return w.begin(w.Synchronous, copying, func() error {
		if err := w.write(filepath.Join(w.Root, dir), p); err != nil {
			return fail(err)
		}
		return nil
	})
}

// Reserve is [Store.Reserve] for what this process writes.
func (w *Writer) Reserve(n int64) {
	if !w.Synchronous {
		w.snapshot.reserve(int(n))
	}
}

// write writes the tensors, then the part file, which says that they are on the disk.
func (w *Writer) write(dir string, p *part) error {
	m, err := p.write(w.fs, dir)
	if err != nil {
		return err
	}
	return errors.Join(m.write(w.fs, dir, partName(w.Number)), w.fs.SyncDir(dir))
}

// Close waits for the write in progress, frees the memory of the snapshot, and returns the error of either.
func (w *Writer) Close() error { return errors.Join(w.Wait(), w.snapshot.close()) }

// background runs one write at a time.
type background struct {
	snapshot room          // of what is written
	copied   chan struct{} // closed when the snapshot is taken; nil if none is being taken
	inflight chan error    // nil if no write is in progress
}

// copyOf moves the part into the snapshot, but for what the function copies that it returns. A synchronous write needs
// none.
func (b *background) copyOf(p *part, synchronous bool) (copying func(), err error) {
	if synchronous {
		return nil, nil
	}
	return p.snapshot(&b.snapshot)
}

// begin calls copying, unless it is nil, and write: in the background, unless they are to be synchronous.
func (b *background) begin(synchronous bool, copying func(), write func() error) error {
	if synchronous {
		return write()
	}
	copied, done := make(chan struct{}), make(chan error, 1)
	b.copied, b.inflight = copied, done
	go func() {
		if copying != nil {
			copying()
		}
		close(copied)
		done <- write()
	}()
	return nil
}

// Copied waits until the snapshot of the write in progress, if any, is taken: then live memory may change.
func (b *background) Copied() {
	if b.copied != nil {
		<-b.copied
		b.copied = nil
	}
}

// Wait waits for the write in progress, if any, and returns its error.
func (b *background) Wait() error {
	if b.inflight == nil {
		return nil
	}
	err := <-b.inflight
	b.inflight = nil
	return err
}

// Done reports whether no write is in progress: Wait then returns at once.
func (b *background) Done() bool { return b.inflight == nil || len(b.inflight) > 0 }
