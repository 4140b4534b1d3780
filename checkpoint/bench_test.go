package checkpoint

import (
	"errors"
	"testing"
	"time"
)

const benchBytes = 128 << 20 // of each of the two big tensors

// BenchmarkSave reports what training waits for (stall), and how long until it may change what is saved (copy), beside
// the whole of a save.
func BenchmarkSave(b *testing.B) {
	s, err := Open(b.TempDir(), Options{Keep: 2, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	tensors, state := stateAt(1, benchBytes)
	if err := errors.Join(s.Save(0, 0, tensors, state), s.Wait()); err != nil { // makes the snapshot's memory
		b.Fatal(err)
	}
	b.SetBytes(2 * benchBytes)
	var stall, copied time.Duration
	for i := int64(1); b.Loop(); i++ {
		began := time.Now()
		err := s.Save(i, i, tensors, state)
		stall += time.Since(began)
		s.Copied()
		copied += time.Since(began)
		if err := errors.Join(err, s.Wait()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(stall.Seconds()*1e3/float64(b.N), "stall-ms/op")
	b.ReportMetric(copied.Seconds()*1e3/float64(b.N), "copy-ms/op")
}

// BenchmarkLoad reads and verifies from the page cache.
func BenchmarkLoad(b *testing.B) {
	root := b.TempDir()
	s, err := Open(root, Options{Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	tensors, state := stateAt(1, benchBytes)
	if err := errors.Join(s.Save(1, 1, tensors, state), s.Wait()); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(2 * benchBytes)
	for b.Loop() {
		if _, err := LoadLatest(root, tensors, &state); err != nil {
			b.Fatal(err)
		}
	}
}
