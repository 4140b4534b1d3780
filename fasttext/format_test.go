package fasttext

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"anneal/internal/filetest"
)

func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for file := range readGolden(t, "golden.json") {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		files[file] = b
	}
	return files
}

// A model that is read and written again has the same bytes, including the order of pruned n-grams.
func TestFilesAreWrittenAsTheyWereRead(t *testing.T) {
	for file, b := range fixtures(t) {
		m, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), b) {
			at := 0
			for at < min(len(b), out.Len()) && b[at] == out.Bytes()[at] {
				at++
			}
			t.Errorf("%s: %d bytes become %d, the first other one is %d", file, len(b), out.Len(), at)
		}
	}
}

// A truncated model is rejected with an error that says so, wherever it is cut.
func TestTruncatedModelsAreRefused(t *testing.T) {
	for file, b := range fixtures(t) {
		for n := 0; n < len(b); n += 1 + n/50 {
			if _, err := Read(bytes.NewReader(b[:n]), int64(n)); err == nil {
				t.Fatalf("%s: %d of %d bytes are read as a model", file, n, len(b))
			}
			_, err := Read(bytes.NewReader(b[:n]), int64(len(b))) // the file shrinks while it is read
			if err == nil || n > 64 && !strings.Contains(err.Error(), "is truncated") {
				t.Fatalf("%s: %d of %d bytes: %v", file, n, len(b), err)
			}
		}
	}
}

// Offsets in a .bin file: the magic number and the version, then 13 hyper-parameters, then the sizes of the
// dictionary.
func TestHostileModelsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		file, want string
		at         int
		value      any
	}{
		"other format":      {"ova.bin", "another format", 0, int32(1)},
		"old version":       {"ova.bin", "version 3", 4, int32(3)},
		"new version":       {"ova.bin", "version 13", 4, int32(13)},
		"no dimensions":     {"ova.bin", "0 dimensions", 8, int32(0)},
		"huge dimension":    {"ova.bin", "dimensions", 8, int32(1 << 30)},
		"other dimension":   {"ova.bin", "6 dimensions", 8, int32(6)},
		"long n-grams":      {"ova.bin", "n-grams of 1000 words", 28, int32(1000)},
		"unknown loss":      {"ova.bin", "unknown loss 9", 32, int32(9)},
		"word vectors":      {"ova.bin", "word vectors", 36, int32(1)},
		"no buckets":        {"ova.bin", "0 buckets", 40, int32(0)},
		"more buckets":      {"ova.bin", "rows, but words and n-grams need", 40, int32(1 << 30)},
		"long characters":   {"ova.bin", "70 characters", 48, int32(70)},
		"huge dictionary":   {"ova.bin", "is truncated", 64, int32(1 << 30)},
		"negative words":    {"ova.bin", "-1 words", 68, int32(-1)},
		"many pruned":       {"ova.bin", "is truncated", 84, int64(1 << 40)},
		"word of no label":  {"ova.bin", "not in order", 68, [2]int32{113, 5}},
		"pruned, not coded": {"ova.bin", "", 84, int64(0)},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", c.file))
		if err != nil {
			t.Fatal(err)
		}
		v, _ := binary.Append(nil, binary.LittleEndian, c.value)
		copy(b[c.at:], v)
		if _, err := Read(bytes.NewReader(b), int64(len(b))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}

// FuzzRead reads damaged models: it must not panic, must use memory in proportion to the input, and what it reads
// must be usable and writable.
func FuzzRead(f *testing.F) {
	files := fixtures(f)
	names := slices.Sorted(maps.Keys(files))
	for i := range names {
		f.Add(uint8(i), []byte{}, "some text </s> __label__a é")
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte, text string) {
		b := filetest.Edit(t, files[names[int(which)%len(names)]], edits)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := Read(bytes.NewReader(b), int64(len(b)))
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+40*len(b)); got > most {
			t.Fatalf("%d bytes: allocated %d, more than %d", len(b), got, most)
		}
		if err != nil {
			if m != nil || len(err.Error()) > 1000 {
				t.Fatalf("%d bytes: a model, and %v", len(b), err)
			}
			return
		}
		for _, s := range m.NewPredictor().Scores([]byte(text)) {
			if !(s >= 0 && s < 1.01) {
				t.Fatalf("score %v", s)
			}
		}
		var out bytes.Buffer
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
	})
}
