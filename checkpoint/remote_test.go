package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"
)

// card is a tensor in the memory of a device.
type card struct{ memory []byte }

func (c *card) Read(dst []byte) error  { copy(dst, c.memory); return nil }
func (c *card) Write(src []byte) error { copy(c.memory, src); return nil }

// The way into the memory of a device leads through a buffer: loading does not take the size of all tensors in host
// memory. A part of a tensor is loaded like the whole.
func TestDeviceMemoryIsFilledThroughABuffer(t *testing.T) {
	const count, size = 12, 12 << 20
	s := mustOpen(t, t.TempDir(), Options{Log: quiet, Synchronous: true})
	var live []Tensor
	for i := range count {
		c := &card{make([]byte, size)}
		fillAt(c.memory, 1, i)
		live = append(live, Tensor{Name: fmt.Sprint("t", count-i), DType: "F32", Shape: []int{size / 4}, Remote: c})
	}
	if err := errors.Join(s.Save(1, 10, live, nil), s.Wait()); err != nil {
		t.Fatal(err)
	}
	var got []Tensor
	for i, x := range live {
		n := size
		if i == 3 {
			x.Region, n = Region{From: size / 8, To: size / 4}, size/2
		}
		x.Remote = &card{make([]byte, n)}
		got = append(got, x)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := LoadLatest(s.root, got, nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > batchBytes+16<<20 {
		t.Errorf("loading %d MB takes %d MB of host memory", count*size>>20, n>>20)
	}
	for i, x := range got {
		want := live[i].Remote.(*card).memory
		if i == 3 {
			want = want[size/2:]
		}
		if !bytes.Equal(x.Remote.(*card).memory, want) {
			t.Errorf("tensor %s is not what was saved", x.Name)
		}
	}
}
