package disk

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"anneal/device"
	"anneal/internal/machine"
	"anneal/internal/units"
	"anneal/tensor"
)

// base is the address of the first byte of a file. No processor maps memory there, so that a mistaken access stops the
// program instead of changing something else.
const base = 1 << 56

// Memory is a file used as device memory. The file disappears with the process, however the process ends. Read and
// Write may be called at the same time for tensors that do not overlap.
type Memory struct {
	dir    string
	file   *os.File
	size   int64
	mutex  sync.Mutex
	failed error
}

// New makes an empty file in a directory. The caller closes it.
func New(dir string) (*Memory, error) {
	f, err := create(dir)
	if err != nil {
		return nil, err
	}
	return &Memory{dir: dir, file: f}, nil
}

// Close frees the file. Nothing may access its tensors afterwards.
func (m *Memory) Close() error { return m.file.Close() }

// NewArena implements device.Memory: size more bytes of the file, zeros. It returns an error if the disk lacks the
// space.
func (m *Memory) NewArena(name string, size int) (*tensor.Arena, error) {
	size = max(size+tensor.Align-1, tensor.Align) &^ (tensor.Align - 1)
	if free, err := machine.FreeDisk(m.dir); err == nil && int64(size) > free {
		return nil, fmt.Errorf("cannot reserve %s on the disk of %s for %s: it has %s",
			units.FormatBytes(int64(size)), m.dir, name, units.FormatBytes(free))
	}
	from := m.size
	if err := reserve(m.file, from, int64(size)); err != nil {
		return nil, fmt.Errorf("cannot reserve %s on the disk of %s for %s: %w",
			units.FormatBytes(int64(size)), m.dir, name, err)
	}
	m.size += int64(size)
	return tensor.Wrap(name, base+uintptr(from), size, true, func() error { return nil }), nil
}

// NewShared implements device.Memory. A file has no memory to share.
func (m *Memory) NewShared(string, int) (*tensor.Arena, error) { return nil, errors.ErrUnsupported }

// Write implements device.Memory. It is complete when it returns; Wait returns its failure.
func (m *Memory) Write(dst *tensor.Tensor, src []byte) {
	device.SameBytes("Write", dst, src)
	_, err := m.file.WriteAt(src, place(dst))
	m.note(err)
}

// Read implements device.Memory.
func (m *Memory) Read(dst []byte, src *tensor.Tensor) {
	device.SameBytes("Read", src, dst)
	_, err := m.file.ReadAt(dst, place(src))
	m.note(err)
}

// place returns the offset in the file at which a tensor begins.
func place(t *tensor.Tensor) int64 { return int64(uintptr(t.Pointer()) - base) }

// note keeps the first failure.
func (m *Memory) note(err error) {
	if err == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.failed == nil {
		m.failed = fmt.Errorf("the file in %s that holds what memory does not: %w", m.dir, err)
	}
}

// Wait implements device.Memory: it returns the first failure.
func (m *Memory) Wait() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.failed
}
