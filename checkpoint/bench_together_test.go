package checkpoint

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// BenchmarkSaveTogether reports how long the slowest of several writers takes to copy what it writes (copy), after
// which training may change it, in the fastest save. They take turns, as if each were on a machine of its own.
func BenchmarkSaveTogether(b *testing.B) {
	for _, writers := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s, err := Open(b.TempDir(), Options{Keep: 2, Log: quiet, Together: true})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			tensors, state := stateAt(1, benchBytes)
			parts, list := make([][]Tensor, writers), make([]*Writer, writers)
			for i := range list {
				parts[i], list[i] = share(tensors, i, writers), &Writer{Root: s.root, Number: i}
			}
			saveOnce := func(step int64) (copied time.Duration) {
				dir, err := s.Begin(step, step, state)
				for i, w := range list {
					began := time.Now()
					err = errors.Join(err, w.Write(dir, parts[i]))
					w.Copied()
					copied = max(copied, time.Since(began))
					err = errors.Join(err, w.Wait())
				}
				if err := errors.Join(err, s.Commit(writers), s.Wait()); err != nil {
					b.Fatal(err)
				}
				return copied
			}
			saveOnce(0) // makes the snapshots' memory
			copied := time.Hour
			for i := int64(1); b.Loop(); i++ {
				copied = min(copied, saveOnce(i))
			}
			b.ReportMetric(copied.Seconds()*1e3, "copy-ms")
		})
	}
}
