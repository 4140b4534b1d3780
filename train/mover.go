package train

import (
	"fmt"

	"anneal/device/disk"
)

// mover moves bytes between two windows in memory and a file, in the order of the requests, while the caller computes.
// The zero value moves nothing; it serves runs that only measure memory.
type mover struct {
	file   *disk.Memory
	work   chan transfer
	done   [2]chan struct{} // by window: its transfer is complete
	served chan struct{}    // closed after the last transfer
}

// transfer writes a window to the file and then reads new contents into it.
type transfer struct {
	window      int
	write, read int // numbers of the items in the file; −1 for none
}

// start serves transfers by move until close.
func (m *mover) start(file *disk.Memory, move func(transfer)) {
	m.file, m.work, m.served = file, make(chan transfer, 2), make(chan struct{})
	for w := range m.done {
		m.done[w] = make(chan struct{}, 1)
	}
	go func() {
		defer close(m.served)
		for x := range m.work {
			move(x)
			m.done[x.window] <- struct{}{}
		}
	}()
}

// idle reports whether there is no file.
func (m *mover) idle() bool { return m.file == nil }

// failure returns the first failure of the file, with the key to change.
func (m *mover) failure() error {
	if err := Wait(m.file); err != nil {
		return fmt.Errorf("memory.offload: %w\n  set memory.offload_dir in the run's config.yaml to a directory on "+
			"another disk, then resume", err)
	}
	return nil
}

// close ends the transfers. The file stays open.
func (m *mover) close() {
	if m.idle() {
		return
	}
	close(m.work)
	<-m.served
	m.file = nil
}
