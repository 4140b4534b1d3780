package parquet

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"anneal/internal/filetest"
)

// readAll opens a file and reads all values of a column; a null is "null!".
func readAll(b []byte, column string) (values []string, groups int, err error) {
	f, err := Open(bytes.NewReader(b), int64(len(b)), column, false)
	if err != nil {
		return nil, 0, err
	}
	for g := range f.Groups {
		err := f.Values(g, func(v []byte) error {
			if v == nil {
				values = append(values, "null!")
			} else {
				values = append(values, string(v))
			}
			if len(values) > 1<<16 {
				return errors.New("enough")
			}
			return nil
		})
		if err != nil {
			return values, len(f.Groups), err
		}
	}
	return values, len(f.Groups), nil
}

func golden(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(paths) < 20 {
		t.Fatal(len(paths), err)
	}
	files := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(p), ".parquet")] = b
	}
	return files
}

// Files written by pyarrow are read correctly, for each codec, encoding and page version, with and without nulls; see
// testdata/make.py.
func TestGoldenFiles(t *testing.T) {
	for name, b := range golden(t) {
		if name == "list" {
			continue
		}
		column := "text"
		if name == "nested" {
			column = "meta.text"
		}
		want := 3
		if name == "empty-group-null" {
			want = 4
		}
		got, groups, err := readAll(b, column)
		if err != nil || len(got) != 120 || groups != want {
			t.Errorf("%s: %d values in %d groups, want 120 in %d: %v", name, len(got), groups, want, err)
			continue
		}
		for i, v := range got {
			want := fmt.Sprintf("document %d %s", i%40, strings.Repeat("wörd ", i%7))
			if i%11 == 0 {
				want = ""
			}
			if i%5 == 3 && name != "int96" && (!strings.HasPrefix(name, "plain-v") &&
				!strings.HasPrefix(name, "delta-v") && !strings.HasPrefix(name, "delta-length-v")) {
				want = "null!"
			}
			if v != want {
				t.Errorf("%s: value %d is %q, want %q", name, i, v, want)
			}
		}
	}
}

func TestWhatIsNotReadIsSaid(t *testing.T) {
	files := golden(t)
	for _, c := range []struct {
		file, column string
		want         error
		message      string
	}{
		{"plain-v1", "content", ErrNoColumn, "id, text"},
		{"plain-v1", "id", ErrNoText, "another type"},
		{"list", "text.list.element", ErrNoText, "in a list"},
		{"nested", "meta", ErrNoColumn, "meta.url, meta.text"},
	} {
		_, _, err := readAll(files[c.file], c.column)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s of %s: %v, want %v with %q", c.column, c.file, err, c.want, c.message)
		}
	}
}

// A file that is truncated, or has any byte changed, is refused or read in part. Bytes under a checksum are never read
// wrongly, and memory stays small.
func TestDamagedFilesAreRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var before, after runtime.MemStats
	for name, b := range golden(t) {
		column := "text"
		want, _, fault := readAll(b, column)
		if fault != nil {
			continue
		}
		for n := 0; n < len(b); n += 1 + r.IntN(40) {
			if _, _, err := readAll(b[:n], column); err == nil {
				t.Fatalf("%s: %d bytes of %d are read without a word", name, n, len(b))
			}
		}
		bad := bytes.Clone(b)
		for range 300 {
			at, bit := r.IntN(len(b)), byte(1)<<r.IntN(8)
			bad[at] ^= bit
			runtime.ReadMemStats(&before)
			got, _, err := readAll(bad, column)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 2*freeExpansion+8<<20 {
				t.Errorf("%s with bit %d of byte %d turned: %d bytes allocated", name, bit, at, n)
			}
			// Checksums do not cover headers: a damaged header may hide the checksum or move the page's limits. Values
			// read without an error are right in nearly all cases, and in all cases if the checksum is intact.
			if err == nil && len(got) != len(want) {
				t.Errorf("%s with bit %d of byte %d turned: %d values of %d, no error",
					name, bit, at, len(got), len(want))
			}
			bad[at] ^= bit
		}
	}
}

// A page that claims a larger size than its bytes can expand to is refused before memory is allocated. A page that
// expands to more than it claims is refused too.
func TestPagesThatLieAreRefused(t *testing.T) {
	content := bytes.Repeat([]byte("a page "), 1<<20/7+1)[:1<<20]
	for codec, compressed := range compressions(content) {
		var s codecs
		out := make([]byte, 1<<20+1)
		if err := s.decompress(out[:1<<20], codec, compressed); err != nil || !bytes.Equal(out[:1<<20], content) {
			t.Errorf("codec %d: a page is not read: %v", codec, err)
		}
		if err := s.decompress(out[:1000], codec, compressed); err == nil {
			t.Errorf("codec %d: a page of 1 MiB passes for 1000 bytes", codec)
		}
		if err := s.decompress(out, codec, compressed); err == nil {
			t.Errorf("codec %d: a page of 1 MiB passes for one byte more", codec)
		}
		for n := 0; n < len(compressed); n += 1 + len(compressed)/50 {
			if err := s.decompress(out[:1<<20], codec, compressed[:n]); err == nil {
				t.Errorf("codec %d: %d bytes of %d pass for the page", codec, n, len(compressed))
			}
		}
	}
	bomb := gz(make([]byte, 1<<20))
	file := func(claim int64) *pages {
		p := &pages{}
		p.begin(&File{r: bytes.NewReader(bomb), size: int64(len(bomb))}, chunk{0, claim, codecGzip})
		return p
	}
	p := file(100)
	if _, err := p.page(header{compressed: 100, uncompressed: maxPage}); !errors.Is(err, ErrPage) ||
		cap(p.out) > 4<<20 {
		t.Errorf("a page of 100 bytes that claims %d: %v, %d bytes taken", maxPage, err, cap(p.out))
	}
	if p.f.given != 0 {
		t.Errorf("the claim of a page that was not read counts %d bytes against the others", p.f.given)
	}
	small := header{compressed: int64(len(bomb)), uncompressed: 1 << 20}
	p, pages := file(int64(len(bomb))), 0
	for pages < 1000 {
		if _, err := p.page(small); err != nil {
			if !errors.Is(err, ErrPage) {
				t.Fatal(err)
			}
			break
		}
		pages++
	}
	if most := int64(freeExpansion) / (1<<20 - maxExpansion*int64(len(bomb))); pages < 64 || int64(pages) > most {
		t.Errorf("%d pages that become 1 MiB each from %d bytes are read, want 64 to %d", pages, len(bomb), most)
	}
}

// compressions returns content compressed with every codec of this test; LZ4 has two of Hadoop's frames, the first
// with two blocks.
func compressions(content []byte) map[int64][]byte {
	block := func(b []byte) []byte {
		out := make([]byte, lz4.CompressBlockBound(len(b)))
		n, _ := lz4.CompressBlock(b, out, nil)
		return out[:n]
	}
	framed := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	half, third := len(content)/2, len(content)/3
	hadoop := binary.BigEndian.AppendUint32(nil, uint32(half))
	hadoop = append(append(hadoop, framed(block(content[:third]))...), framed(block(content[third:half]))...)
	hadoop = binary.BigEndian.AppendUint32(hadoop, uint32(len(content)-half))
	hadoop = append(hadoop, framed(block(content[half:]))...)
	br, _ := base64.StdEncoding.DecodeString("W///j99IbXU3Z1IJEnZWZXBxWyRw9v4hGw==") // of "a page ", by the original
	z, _ := zstd.NewWriter(nil)
	return map[int64][]byte{
		codecSnappy: snappy.Encode(nil, content), codecGzip: gz(content), codecBrotli: br,
		codecZstd: z.EncodeAll(content, nil), codecLZ4: hadoop, codecLZ4Raw: block(content),
	}
}

// damaged adds every golden file of less than 10 kB to the corpus of a fuzz target, and returns the function that
// edits one of them.
func damaged(f *testing.F) func(t *testing.T, which uint8, edits []byte) []byte {
	files := golden(f)
	names := slices.Sorted(maps.Keys(files))
	names = slices.DeleteFunc(names, func(name string) bool { return len(files[name]) >= 10_000 })
	for i := range names {
		f.Add(uint8(i), []byte{})
	}
	return func(t *testing.T, which uint8, edits []byte) []byte {
		return filetest.Edit(t, files[names[int(which)%len(names)]], edits)
	}
}

// FuzzFile checks that no file causes a panic, and that memory does not depend on claimed sizes.
func FuzzFile(f *testing.F) {
	file := damaged(f)
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		b := file(t, which, edits)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		total := 0
		values, _, _ := readAll(b, "text")
		for _, v := range values {
			total += len(v) + 32
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(2*(freeExpansion+maxExpansion*len(b))+8*total+8<<20) {
			t.Errorf("%d bytes with %d bytes of values: allocated %d", len(b), total, n)
		}
	})
}

func gz(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func TestChecksumsAreVerified(t *testing.T) {
	b := golden(t)["dictionary-none-v1"]
	at := bytes.Index(b, []byte("document 7"))
	b[at] ^= 1
	if values, _, err := readAll(b, "text"); err == nil || !strings.Contains(err.Error(), "checksum") ||
		len(values) > 0 {
		t.Errorf("with a letter changed: %d values, %v", len(values), err)
	}
}

// Row groups that share their bytes would make a short file long.
func TestRowGroupsThatOverlapAreRefused(t *testing.T) {
	b := golden(t)["plain-v1"]
	f, err := Open(bytes.NewReader(b), int64(len(b)), "text", false)
	if err != nil {
		t.Fatal(err)
	}
	first := f.Groups[0].Bytes
	// the field follows another one, as total_compressed_size does
	claim := func(n int64) []byte { return binary.AppendVarint([]byte{0x16}, n) }
	more := int64(len(b)) - 8 - f.Groups[0].offset
	bad := bytes.Replace(b, claim(first), claim(more), 1)
	if bytes.Equal(bad, b) || len(bad) != len(b) {
		t.Fatalf("the size %d of the first group is not to be changed to %d", first, more)
	}
	if _, err := Open(bytes.NewReader(bad), int64(len(bad)), "text", false); err == nil {
		t.Error("row groups that overlap are read")
	}
}
