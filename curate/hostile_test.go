package curate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// hostileTexts are shapes that are no one's prose, each as long as asked.
var hostileTexts = map[string]func(size int) []byte{
	"one word":         func(size int) []byte { return bytes.Repeat([]byte("a"), size) },
	"newlines":         func(size int) []byte { return bytes.Repeat([]byte("\n"), size) },
	"hashes":           func(size int) []byte { return bytes.Repeat([]byte("#"), size) },
	"Chinese":          func(size int) []byte { return bytes.Repeat([]byte("風"), size/3) },
	"no-break spaces":  func(size int) []byte { return bytes.Repeat([]byte("\u00a0"), size/2) },
	"not UTF-8":        func(size int) []byte { return bytes.Repeat([]byte{0xe2, 0x80}, size/2) },
	"one letter words": func(size int) []byte { return bytes.Repeat([]byte("a "), size/2) },
	"joiners":          func(size int) []byte { return bytes.Repeat([]byte("a-b'"), size/4) },
	"dots and digits":  func(size int) []byte { return bytes.Repeat([]byte("1."), size/2) },
	"marks and closers": func(size int) []byte {
		return append(bytes.Repeat([]byte(")"), size/2), bytes.Repeat([]byte("."), size/2)...)
	},
	"open brackets":        func(size int) []byte { return bytes.Repeat([]byte("[1"), size/2) },
	"addresses":            func(size int) []byte { return bytes.Repeat([]byte("a.b@c."), size/6) },
	"cookies":              func(size int) []byte { return bytes.Repeat([]byte("use cookie "), size/11) },
	"lines that differ":    func(size int) []byte { return numbers(size, '\n') },
	"words that differ":    func(size int) []byte { return numbers(size, ' ') },
	"words that meet all":  func(size int) []byte { return pairsOf(size, 64) }, // every 2-gram repeats, few longer ones
	"words that meet most": func(size int) []byte { return pairsOf(size, 4) },  // every 4-gram repeats
}

func numbers(size int, between byte) (text []byte) {
	for i := 0; len(text) < size; i++ {
		text = append(strconv.AppendInt(text, int64(i), 36), between)
	}
	return text
}

func pairsOf(size, words int) (text []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for len(text) < size {
		text = append(text, byte('0'+r.IntN(words)), ' ')
	}
	return text
}

// A document sixteen times as long takes about sixteen times as long and as much memory, whatever it is made of.
func TestTimeAndMemoryAreLinearInAnyText(t *testing.T) {
	const small, large = 1 << 17, 1 << 21
	filters := func() []*Filter {
		return []*Filter{
			GopherRepetition(), GopherQuality(), FineWeb(), Code(), PII(), C4(true), FineWeb(), Normalize(),
			GopherRepetition(),
		}
	}
	measure := func(text []byte) (took time.Duration, allocated int) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := cpuTime()
		d := &Doc{Text: text}
		for _, f := range filters() {
			f.Apply(d)
		}
		took = cpuTime() - start
		runtime.ReadMemStats(&after)
		return took, int(after.TotalAlloc - before.TotalAlloc)
	}
	for name, make := range hostileTexts {
		took, _ := measure(make(small))
		longer, allocated := measure(make(large))
		if limit := 6 * took * large / small; longer > limit+50*time.Millisecond {
			t.Errorf("%s: %d bytes take %v, %d take %v", name, small, took, large, longer)
		}
		// At most 75 bytes for each; 101 under the race detector, where growing a slice allocates what it grows by as
		// well.
		if allocated > 130*large {
			t.Errorf("%s: %d bytes allocate %d", name, large, allocated)
		}
	}
}

// Hashes that are alike in any of their bits do not fall to like places.
func TestTablesTakeAlikeHashes(t *testing.T) {
	const n = 1 << 15
	var tab table
	for _, shift := range []int{0, 16, 32, 48} {
		tab.reset(n)
		start := cpuTime()
		for i := range uint64(n) {
			if tab.first(i<<shift|1<<63, uint32(i)) != uint32(i) {
				t.Fatalf("%d << %d was there before", i, shift)
			}
		}
		if took := cpuTime() - start; took > 200*time.Millisecond { // 2 ms, or 500 and more if all of them met
			t.Errorf("%d hashes that differ from bit %d on take %v", n, shift, took)
		}
	}
}

// Once a long document is done, stages keep none of its memory.
func TestMemoryOfLongDocumentsIsReturned(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "list.txt")
	if err := os.WriteFile(list, []byte("forbidden\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	stages := mustParse(t, fmt.Sprintf("stages: [normalize, {c4: {terminal_punctuation: false}}, pii, identifiers, "+
		"{bad_words: {list: %q}}, {decontaminate: {against: %[1]q, ngram: 1, shortest: 1}}]", list)).NewStages()
	var d Doc
	apply := func(text []byte) {
		d.Signals = d.Signals[:0]
		d.SetText(text)
		for _, s := range stages {
			s.Apply(&d)
		}
		d.SetText(nil)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	apply([]byte("a short text"))
	before := heap()
	apply(bytes.Repeat([]byte("write to a@b.org or +49 30 1234567 [1] of this line, with more  \r\n"), 8<<20/64))
	if now := heap(); now > before+2<<20 {
		t.Errorf("%d MiB are kept of a document of 8 MiB", (now-before)>>20)
	}
	runtime.KeepAlive(stages)
}
