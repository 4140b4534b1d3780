package corpus

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// readSplits reads paths under dir in splits of size bytes, or whole if that is 0, and says how much memory was
// allocated.
func readSplits(t testing.TB, dir string, size int64,
	opt Options) (docs []Document, rejects map[Reason]int, allocated uint64) {
	t.Helper()
	r, err := Open([]string{dir}, opt)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	readers := []*Reader{r}
	if size > 0 {
		readers = nil
		for _, s := range r.Splits(size) {
			readers = append(readers, s.Open(nil))
		}
	}
	rejects = map[Reason]int{}
	for _, r := range readers {
		for d, err := range r.Documents() {
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, d)
		}
		for reason, n := range counts(r.Report()) {
			rejects[reason] += n
		}
	}
	runtime.ReadMemStats(&after)
	return docs, rejects, after.TotalAlloc - before.TotalAlloc
}

// A line of a gigabyte is passed over in little memory, and by each split that it goes through.
func TestGigabyteLine(t *testing.T) {
	long := int64(1) << 30
	if testing.Short() {
		long >>= 5
	}
	dir := tree(t, map[string]string{"a.jsonl": "{\"text\":\"before\"}\n", "b.txt": "text"})
	path := filepath.Join(dir, "a.jsonl")
	if err := os.Truncate(path, long); err != nil { // a hole, where the file system has them
		t.Skip(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("\n{\"text\":\"after\"}\n")
	f.Close()
	if err := os.Truncate(filepath.Join(dir, "b.txt"), long); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{0, long / 4} {
		docs, rejects, allocated := readSplits(t, dir, size, Options{MaxLine: 1 << 20})
		if len(docs) != 2 || string(docs[1].Text) != "after" || docs[1].Offset != long+1 || rejects[LongLine] != 1 ||
			rejects[Binary] != 1 || len(rejects) != 2 {
			t.Errorf("in splits of %d: %d documents, rejects %v", size, len(docs), rejects)
		}
		if allocated > 24<<20 {
			t.Errorf("in splits of %d: %d bytes allocated", size, allocated)
		}
	}
}

// Bombs of each compression are given up after 64 MiB, and cost no memory.
func TestBombsOfEachCompression(t *testing.T) {
	megabyte := strings.Repeat("a", 1<<20)
	dir := tree(t, map[string]string{
		"a.jsonl.gz": strings.Repeat(gz(megabyte), 200), "b.jsonl.zst": strings.Repeat(zst(megabyte), 200),
		"c.wet.gz": gz("WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 1000000000\r\n\r\n") +
			strings.Repeat(gz(megabyte), 200), "d.txt.zst": strings.Repeat(zst(megabyte), 200),
	})
	docs, rejects, allocated := readSplits(t, dir, 0, Options{MaxRatio: 10, MaxLine: 1 << 20})
	if rejects[Bomb] != 4 || allocated > 400<<20 {
		t.Errorf("%d documents, rejects %v, %d bytes allocated", len(docs), rejects, allocated)
	}
}

// Lines in several encodings: each is judged by itself, and bytes pass unchanged.
func TestMixedEncodings(t *testing.T) {
	utf16 := "\xff\xfe{\x00\"\x00t\x00"
	dir := tree(t, map[string]string{
		"a.jsonl": "{\"text\":\"utf-8 é 世\"}\n{\"text\":\"latin-1 caf\xe9, a byte in many is let pass\"}\n" +
			"{\"text\":\"\xe9\xe8\xea\xeb\"}\n{\"text\":\"\\u0000\"}\n" + utf16 + "\n{\"text\":\"\\ud800 half\"}\n",
		"b.jsonl": utf16, "c.txt": utf16, "d.txt": "\xfe\xff\x00a", "e.txt": "text \x00",
		"f.txt": strings.Repeat("\x83\x82", 100),
	})
	docs, rejects, _ := readSplits(t, dir, 0, Options{})
	want := []string{"utf-8 é 世", "latin-1 caf\xe9, a byte in many is let pass", "\ufffd half"}
	if len(docs) != len(want) || rejects[NotUTF8] != 2 || rejects[UTF16] != 2 || rejects[Binary] != 2 ||
		rejects[BadJSON] != 2 {
		t.Fatalf("%d documents, rejects %v", len(docs), rejects)
	}
	for i := range want {
		if string(docs[i].Text) != want[i] {
			t.Errorf("document %d is %q, want %q", i, docs[i].Text, want[i])
		}
	}
}

// A compressed file that is cut off at any byte gives the first of its documents, and says that it is cut off.
func TestCutOffStreams(t *testing.T) {
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, "{\"text\":\"document %d %x\"}\n", i, i*2654435761)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for name, whole := range map[string]string{
		"a.jsonl.gz": gz(lines.String()), "a.jsonl.zst": zst(lines.String()), "b.jsonl.gz": bgzf(lines.String(), 5000),
	} {
		for range 40 {
			n := 1 + r.IntN(len(whole)-1)
			dir := tree(t, map[string]string{name: whole[:n]})
			for _, size := range []int64{0, 4000} {
				in, err := Open([]string{dir}, Options{})
				if err != nil {
					t.Fatal(err)
				}
				in.split = true // no document is no error here
				readers, last := []*Reader{in}, -1
				if size > 0 {
					readers = nil
					for _, s := range in.Splits(size) {
						readers = append(readers, s.Open(nil))
					}
				}
				corrupt := 0
				for _, r := range readers {
					for d, err := range r.Documents() {
						last++
						if err != nil || !strings.HasPrefix(string(d.Text), fmt.Sprintf("document %d ", last)) {
							t.Fatalf("%s cut at %d, splits of %d: document %d is %q, %v",
								name, n, size, last, d.Text, err)
						}
					}
					corrupt += counts(r.Report())[Corrupt]
				}
				if corrupt == 0 {
					t.Errorf("%s of %d bytes cut at %d, splits of %d: %d documents without a word",
						name, len(whole), n, size, last+1)
				}
			}
		}
	}
}
