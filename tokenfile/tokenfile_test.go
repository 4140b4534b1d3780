package tokenfile

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anneal/internal/filetest"
)

// The bytes that other systems make of documents, and ours of the same, are one; see testdata/golden.py.
func TestFilesAreThoseOfTheOriginals(t *testing.T) {
	raw, err := os.ReadFile("testdata/peers.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Cases []json.RawMessage }
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, c := range golden.Cases {
		var fields map[string]json.RawMessage
		var in struct {
			Vocab     int
			EOT       uint32
			Documents [][]uint32
		}
		if json.Unmarshal(c, &fields) != nil || json.Unmarshal(c, &in) != nil {
			t.Fatal("fixture")
		}
		v := Vocabulary{Size: in.Vocab, EOT: in.EOT, Name: "tok.json"}
		for _, f := range []Format{nanoGPT, llmC, megatron, datatrove} {
			var want map[string]string
			if err := json.Unmarshal(fields[f.Name], &want); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			write(t, f, dir, v, in.Documents)
			for name, content := range want {
				got, err := os.ReadFile(filepath.Join(dir, name))
				if strings.HasSuffix(name, ".metadata") { // its last line is for people
					b, _ := hex.DecodeString(content)
					lines := strings.Split(string(b), "\n")
					content = hex.EncodeToString([]byte(strings.Join(lines[:2], "\n")))
					got = []byte(strings.Join(strings.Split(string(got), "\n")[:2], "\n"))
				}
				if err != nil || hex.EncodeToString(got) != content {
					t.Errorf("%s, vocabulary %d, %s: %x, %v\nwant %s", f.Name, in.Vocab, name, got, err, content)
				}
				checked++
			}
			theirs := t.TempDir()
			for name, content := range want {
				b, _ := hex.DecodeString(content)
				os.MkdirAll(filepath.Dir(filepath.Join(theirs, name)), 0o777)
				if err := os.WriteFile(filepath.Join(theirs, name), b, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if got := read(t, f, theirs, v); !slices.EqualFunc(got, in.Documents, slices.Equal) {
				t.Errorf("%s, vocabulary %d: read %v, want %v", f.Name, in.Vocab, got, in.Documents)
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d files compared", checked)
	}
}

// An id that the file would cut to 16 bits, or that would end the document, is refused, and the file stays readable.
func TestIDsThatAFileCannotHoldAreRefused(t *testing.T) {
	v := Vocabulary{Size: 300, EOT: 299}
	for _, f := range Formats {
		dir := t.TempDir()
		w, err := f.Create(dir, "train", v)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write([]uint32{1, 2}); err != nil {
			t.Fatal(err)
		}
		for _, id := range []uint32{299, 300, 70000} {
			if err := w.Write([]uint32{1, id}); err == nil || !strings.Contains(err.Error(), "document 1: token 1") {
				t.Errorf("%s: id %d: %v", f.Name, id, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := read(t, f, dir, v); len(got) != 1 || !slices.Equal(got[0], []uint32{1, 2}) {
			t.Errorf("%s: read %v", f.Name, got)
		}
	}
}

func write(t testing.TB, f Format, dir string, v Vocabulary, docs [][]uint32) {
	t.Helper()
	w, err := f.Create(dir, "train", v)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		if err := w.Write(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, f Format, dir string, v Vocabulary) (docs [][]uint32) {
	t.Helper()
	paths, err := f.Find(dir, "train")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: found %v, %v", f.Name, paths, err)
	}
	for d, err := range f.Read(paths, v, new(uint64)) {
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, slices.Clone(d))
	}
	return docs
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := Vocabulary{
			Size: rapid.SampledFrom([]int{2, 257, 65499, 65500, 65536, 65537, 1 << 20}).Draw(rt, "vocabulary"),
			Name: "a|b\nc",
		}
		v.EOT = uint32(rapid.IntRange(0, v.Size-1).Draw(rt, "eot"))
		id := rapid.Uint32Range(0, uint32(v.Size-1)).Filter(func(id uint32) bool { return id != v.EOT })
		docs := rapid.SliceOfN(rapid.SliceOfN(id, 1, 40), 1, 20).Draw(rt, "documents")
		f := rapid.SampledFrom(Formats).Draw(rt, "format")
		dir := filepath.Join(t.TempDir(), "a[b]*")
		write(t, f, dir, v, docs)
		if got := read(t, f, dir, v); !slices.EqualFunc(got, docs, slices.Equal) {
			rt.Fatalf("%s: %v became %v", f.Name, docs, got)
		}
	})
}

func TestDocumentsGoOnInTheNextFileOfLLMC(t *testing.T) {
	v, docs := Vocabulary{Size: 300}, [][]uint32{{1, 2, 3, 4, 5}, {6}, {7, 8, 9, 10, 11, 12, 13}}
	dir := t.TempDir()
	w := &llmcWriter{dir: dir, split: "train", v: v, most: 4}
	for _, d := range docs {
		if err := w.Write(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	paths, _ := llmC.Find(dir, "train")
	if len(paths) != 4 { // 16 tokens
		t.Errorf("%d files, want 4", len(paths))
	}
	if got := read(t, llmC, dir, v); !slices.EqualFunc(got, docs, slices.Equal) {
		t.Errorf("read %v, want %v", got, docs)
	}
}

// The tokenizer of another data set, and a file that is none, are found out.
func TestWhatIsNoTokenFileIsRefused(t *testing.T) {
	v := Vocabulary{Size: 300, EOT: 299}
	for _, f := range Formats {
		dir := t.TempDir()
		write(t, f, dir, v, [][]uint32{{1, 298}, {2}})
		paths, _ := f.Find(dir, "train")
		if err := readError(f, paths, Vocabulary{Size: 298, EOT: 0}); err == nil ||
			!strings.Contains(err.Error(), "the tokenizer has 298") {
			t.Errorf("%s with a smaller vocabulary: %v", f.Name, err)
		}
		if err := readError(f, []string{dir}, v); err == nil {
			t.Errorf("%s read a directory", f.Name)
		}
	}
	for _, c := range []struct {
		f       Format
		content string
		want    string
	}{
		{nanoGPT, "abc", "1 extra bytes after the last token"},
		{llmC, "abc", "too short"},
		{llmC, strings.Repeat("\x00", 2000), "magic 0"},
		{megatron, "abc", "MMIDIDX"},
		{megatron, megatronMagic + "\x02" + strings.Repeat("\x00", 40), "version 2"},
		{megatron, megatronMagic + "\x01\x00\x00\x00\x00\x00\x00\x00\x07" + strings.Repeat("\xff", 40), "type 7"},
		{megatron, megatronMagic + "\x01\x00\x00\x00\x00\x00\x00\x00\x08" + strings.Repeat("\xff", 40), "do not fit"},
	} {
		path := filepath.Join(t.TempDir(), "x.idx")
		if err := os.WriteFile(path, []byte(c.content), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := readError(c.f, []string{path}, v); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("%s of %q: %v, want %q and the path", c.f.Name, c.content[:3], err, c.want)
		}
	}
}

// Without EOT in the files, or with that of another tokenizer, the indexes still cut documents, and it is said.
func TestDocumentsThatNoEOTEndsAreCounted(t *testing.T) {
	docs := [][]uint32{{1, 2}, {3}, {4, 5, 6}}
	for _, f := range []Format{megatron, datatrove} {
		dir := t.TempDir()
		write(t, f, dir, Vocabulary{Size: 300, EOT: 299}, docs)
		paths, _ := f.Find(dir, "train")
		for eot, want := range map[uint32]uint64{299: 0, 298: 3} {
			got, unended := 0, uint64(0)
			for _, err := range f.Read(paths, Vocabulary{Size: 300, EOT: eot}, &unended) {
				if err != nil {
					t.Fatal(err)
				}
				got++
			}
			if got != len(docs) || unended != want {
				t.Errorf("%s with EOT %d: %d documents, %d without, want %d and %d",
					f.Name, eot, got, unended, len(docs), want)
			}
		}
	}
}

// A small index cannot read one .bin again and again, and documents hold all of its sequences.
func TestSequencesOfMegatronAreInOneDocumentEach(t *testing.T) {
	v, dir := Vocabulary{Size: 300, EOT: 299}, t.TempDir()
	write(t, megatron, dir, v, [][]uint32{{1, 2}, {3, 4}})
	path := filepath.Join(dir, "train.idx")
	index, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	index[megatronHeader+4*2] = 0   // the second sequence begins
	index[megatronHeader+4*2+8] = 0 // where the first does,
	index[megatronHeader] = 6       // which goes to the end of the file
	if err := os.WriteFile(path, index, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := readError(megatron, []string{path}, v); err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("error %v, want one of sequences that overlap", err)
	}

	write(t, megatron, dir, v, [][]uint32{{1, 2}, {3, 4}})
	if index, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	index[megatronHeader-8]-- // the list of documents ends before the second sequence
	if err := os.WriteFile(path, index[:len(index)-8], 0o666); err != nil {
		t.Fatal(err)
	}
	if err := readError(megatron, []string{path}, v); err == nil ||
		!strings.Contains(err.Error(), "documents ends at sequence 1 of 2") {
		t.Errorf("error %v, want one of documents that end before the sequences", err)
	}
}

func readError(f Format, paths []string, v Vocabulary) error {
	for _, err := range f.Read(paths, v, new(uint64)) {
		if err != nil {
			return err
		}
	}
	return nil
}

// No cut of a file may pass for the whole, except where the format cannot tell: behind the last token of a file of ids
// alone.
func TestCutFilesAreFoundOut(t *testing.T) {
	v := Vocabulary{Size: 300, EOT: 299}
	docs := [][]uint32{{1, 2, 3}, {4, 5}, {6}}
	for _, f := range []Format{llmC, megatron, datatrove} {
		dir := t.TempDir()
		write(t, f, dir, v, docs)
		paths, _ := f.Find(dir, "train")
		path := paths[0]
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := range whole {
			if err := os.WriteFile(path, whole[:n], 0o666); err != nil {
				t.Fatal(err)
			}
			if err := readError(f, paths, v); err == nil {
				t.Errorf("%s: %d of %d bytes passed for all", f.Name, n, len(whole))
			}
		}
	}
}

// Whatever the bytes of a damaged file say, a reader takes about as much memory as they are long, and ends.
func FuzzRead(f *testing.F) {
	v := Vocabulary{Size: 300, EOT: 299}
	first, second := make([][]byte, len(Formats)), make([][]byte, len(Formats))
	for i, format := range Formats {
		dir := f.TempDir()
		write(f, format, dir, v, [][]uint32{{1, 2, 3}, {4}})
		paths, _ := format.Find(dir, "train")
		first[i], _ = os.ReadFile(paths[0])
		second[i], _ = os.ReadFile(beside(paths[0]))
		f.Add(uint8(i), []byte{}, []byte{})
	}
	f.Add(uint8(2), filetest.Splice(0, 1<<16-1, megatronMagic+"\x01\x00\x00\x00\x00\x00\x00\x00\x08"+
		strings.Repeat("\xff", 36)), filetest.Splice(0, 1<<16-1, ""))
	dir := filetest.MemoryDir(f)
	f.Fuzz(func(t *testing.T, which uint8, edits, others []byte) {
		n := int(which) % len(Formats)
		format, a, b := Formats[n], filetest.Edit(t, first[n], edits), filetest.Edit(t, second[n], others)
		path := filepath.Join(dir, "x.idx")
		if os.WriteFile(path, a, 0o666) != nil || os.WriteFile(beside(path), b, 0o666) != nil ||
			os.WriteFile(path+".index", b, 0o666) != nil {
			t.Skip()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tokens := 0
		for d, err := range format.Read([]string{path}, v, new(uint64)) {
			if err != nil {
				break
			}
			tokens += len(d)
			if slices.ContainsFunc(d, func(id uint32) bool { return int(id) >= v.Size || id == v.EOT }) {
				t.Fatalf("%s: document %v of a vocabulary of %d", format.Name, d, v.Size)
			}
			if tokens > len(a)+len(b) {
				t.Fatalf("%s: %d tokens of %d bytes", format.Name, tokens, len(a)+len(b))
			}
		}
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(16<<20+64*(len(a)+len(b))); got > most {
			t.Errorf("%s: %d bytes allocated for %d", format.Name, got, len(a)+len(b))
		}
	})
}

// beside is the second file of a format that has two.
func beside(path string) string {
	if name, index := strings.CutSuffix(path, ".idx"); index {
		return name + ".bin"
	}
	return path + ".index"
}

func TestFormatsAreNamed(t *testing.T) {
	for _, f := range Formats {
		if got, err := Named(f.Name); err != nil || got.Name != f.Name {
			t.Errorf("%s: %v, %v", f.Name, got.Name, err)
		}
	}
	if _, err := Named("npz"); err == nil || !strings.Contains(err.Error(), "megatron") {
		t.Errorf("npz: %v", err)
	}
}

func BenchmarkRead(b *testing.B) {
	v := Vocabulary{Size: 50257, EOT: 50256}
	docs := make([][]uint32, 1000)
	for i := range docs {
		docs[i] = bytes2ids(bytes.Repeat([]byte(fmt.Sprint(i)), 300))
	}
	for _, f := range Formats {
		b.Run(f.Name, func(b *testing.B) {
			dir := b.TempDir()
			write(b, f, dir, v, docs)
			paths, _ := f.Find(dir, "train")
			b.SetBytes(2 * int64(f.About(paths, v)))
			for b.Loop() {
				if err := readError(f, paths, v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func bytes2ids(b []byte) []uint32 {
	ids := make([]uint32, len(b))
	for i, c := range b {
		ids[i] = uint32(c)
	}
	return ids
}
