package extsort

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Records of any length, many of them equal, are returned in the order of slices.SortFunc, whatever the memory.
func TestSortedEqualsSlicesSort(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 24).Draw(t, "size")
		n := rapid.IntRange(0, 3000).Draw(t, "n")
		alphabet := rapid.SampledFrom([]uint64{1, 2, 256}).Draw(t, "alphabet")
		x := rapid.Uint64().Draw(t, "seed")
		all := make([]byte, n*size)
		for i := range all {
			x = x*6364136223846793005 + 1442695040888963407
			all[i] = byte((x >> 33) % alphabet)
		}
		s := New(size, 0, dir)
		s.limit = rapid.SampledFrom([]int{1 << 20, 4 << 10, 2 * minBuffer}).Draw(t, "limit") / size * size
		defer s.Close()
		if err := s.Add(all); err != nil {
			t.Fatal(err)
		}
		want := make([][]byte, n)
		for i := range want {
			want[i] = all[i*size : (i+1)*size]
		}
		slices.SortFunc(want, bytes.Compare)
		for range 2 { // the result can be read again
			i := 0
			for got, err := range s.Sorted() {
				if err != nil {
					t.Fatal(err)
				}
				if i >= n || !bytes.Equal(got, want[i]) {
					t.Fatalf("record %d of %d is %x", i, n, got)
				}
				i++
			}
			if i != n {
				t.Fatalf("%d records of %d came back", i, n)
			}
		}
	})
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files left behind", len(left))
	}
}

// Sorting a hundred times the memory, with merges of merges, does not exceed the memory.
func TestMemoryIsBounded(t *testing.T) {
	s := New(16, 64<<10, t.TempDir())
	defer s.Close()
	const n = 400_000
	rec := make([]byte, 16)
	for i := range n {
		copy(rec, fmt.Sprintf("%016x", uint64(i)*k))
		if err := s.Add(rec); err != nil {
			t.Fatal(err)
		}
		if cap(s.buf) > 64<<10 {
			t.Fatalf("holds %d bytes", cap(s.buf))
		}
	}
	if s.Spilled() < n*16-64<<10 {
		t.Fatalf("spilled %d bytes of %d", s.Spilled(), n*16)
	}
	last, count := make([]byte, 16), 0
	for r, err := range s.Sorted() {
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Compare(last, r) >= 0 {
			t.Fatalf("record %d: %s after %s", count, r, last)
		}
		copy(last, r)
		count++
	}
	if count != n || len(s.runs) > 64<<10/minBuffer {
		t.Errorf("%d records of %d, %d runs at the end", count, n, len(s.runs))
	}
}

const k = 0x9e3779b97f4a7c15

func BenchmarkSort(b *testing.B) {
	const n = 1 << 20
	b.SetBytes(16 * n)
	rec := make([]byte, 16)
	for b.Loop() {
		s := New(16, 16*n, "")
		for i := range uint64(n) {
			x := i * k
			for j := range 8 {
				rec[j] = byte(x >> (8 * j))
			}
			rec[15] = byte(i)
			s.Add(rec)
		}
		for range s.Sorted() {
			break
		}
		s.Close()
	}
}
