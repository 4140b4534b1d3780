package disk

import (
	"bytes"
	"errors"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"anneal/device"
	"anneal/tensor"
)

var _ device.Memory = (*Memory)(nil)

func open(t *testing.T) *Memory {
	t.Helper()
	m, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// Tensors of any arenas, and slices of them, hold what was written last, and zeros before.
func TestTensorsHoldWhatWasWritten(t *testing.T) {
	m := open(t)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "elements")
		a, err := m.NewArena("state", 4*n+100)
		if err != nil {
			t.Fatal(err)
		}
		first, second := a.New(tensor.F32, n), a.New(tensor.U8, 17)
		want := make([]byte, 4*n)
		for range rapid.IntRange(0, 4).Draw(t, "writes") {
			from := rapid.IntRange(0, n).Draw(t, "from")
			to := rapid.IntRange(from, n).Draw(t, "to")
			part := first.Slice(from, to)
			b := rapid.SliceOfN(rapid.Byte(), part.Bytes(), part.Bytes()).Draw(t, "bytes")
			m.Write(&part, b)
			copy(want[4*from:], b)
		}
		got, other := make([]byte, 4*n), make([]byte, 17)
		m.Read(got, &first)
		m.Read(other, &second)
		if !first.Apart() || !bytes.Equal(got, want) || !bytes.Equal(other, make([]byte, 17)) || m.Wait() != nil {
			t.Fatalf("apart %v, %v; a neighbour holds %v", first.Apart(), m.Wait(), other)
		}
	})
}

// A checkpoint reads while an update writes elsewhere.
func TestReadsAndWritesOverlap(t *testing.T) {
	m := open(t)
	a, err := m.NewArena("state", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 8 {
		x := a.New(tensor.U8, 1<<16)
		wait.Go(func() {
			for k := range 50 {
				b, got := bytes.Repeat([]byte{byte(8*k + i)}, 1<<16), make([]byte, 1<<16)
				m.Write(&x, b)
				if m.Read(got, &x); !bytes.Equal(got, b) {
					t.Errorf("tensor %d holds another's bytes", i)
				}
			}
		})
	}
	wait.Wait()
}

func TestWaitKeepsTheFirstFailure(t *testing.T) {
	m := open(t)
	a, err := m.NewArena("state", 64)
	if err != nil {
		t.Fatal(err)
	}
	x := a.New(tensor.U8, 64)
	m.file.Close()
	m.Write(&x, make([]byte, 64))
	if err := m.Wait(); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), m.dir) {
		t.Errorf("after a write to a closed file: %v", err)
	}
}

func TestADiskThatIsTooSmallIsRefused(t *testing.T) {
	m := open(t)
	if _, err := m.NewArena("optimizer state", math.MaxInt64/4); err == nil ||
		!strings.Contains(err.Error(), m.dir) || !strings.Contains(err.Error(), "optimizer state") {
		t.Errorf("two EiB of disk: %v", err)
	}
	if _, err := New(m.dir + "/no"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a directory that does not exist: %v", err)
	}
}
