package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// What a Writer writes a Reader gives back, byte for byte, over several files.
func TestWrittenDocumentsComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const odd = "\"\\\n\t\r\x01\x1f\x7f\xc3é …</"
	dir := t.TempDir()
	w := NewWriter(dir, 4000)
	var texts []string
	for i := range 200 {
		b := []byte("text enough to be text, whatever stands in it: text, text, and more text, " +
			"until a tenth of it is not much")
		for range 8 {
			b[r.IntN(len(b))] = odd[r.IntN(len(odd))]
		}
		texts = append(texts, string(b))
		if err := w.Write(Document{Source: fmt.Sprintf("a\"%d", i), Index: i, Text: b}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for d, err := range in.Documents() {
		if err != nil {
			t.Fatal(err)
		}
		if string(d.Text) != texts[n] {
			t.Fatalf("document %d is %q, was %q", n, d.Text, texts[n])
		}
		n++
	}
	if n != len(texts) || in.Report().Files < 4 {
		t.Errorf("%d documents of %d came back: %s", n, len(texts), in.Report())
	}
}

// Files that are written can be cut again, where their frames begin.
func TestWrittenFilesCanBeCut(t *testing.T) {
	dir := t.TempDir()
	w := NewWriter(dir, 0)
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 200_000)
	for i := range 100 {
		for j := range text {
			text[j] = byte('a' + r.IntN(26))
		}
		if err := w.Write(Document{Source: "s", Index: i, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	splits, n := in.Splits(2<<20), 0
	for _, s := range splits {
		for d, err := range s.Open(nil).Documents() {
			if err != nil || len(d.Text) != len(text) {
				t.Fatal(n, len(d.Text), err)
			}
			n++
		}
	}
	if n != 100 || len(splits) < 4 {
		t.Errorf("%d documents of 100 in %d splits of 2 MiB of a file of %d", n, len(splits), in.Size())
	}
}

// A file without lines is whole: nothing of it is lost.
func TestFileOfNoLinesIsEmptyNotDamaged(t *testing.T) {
	dir := t.TempDir()
	f, err := CreateLines(filepath.Join(dir, "none.jsonl.zst"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "some.txt"), []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	if docs, rep := read(t, dir, Options{}, "."); len(docs) != 1 || rep.Lost != nil || counts(rep)[Empty] != 1 {
		t.Errorf("%d documents, lost %+v: %s", len(docs), rep.Lost, rep)
	}
}

// A line of a file whose name is not UTF-8 is JSON that any reader takes.
func TestPlacesAreUTF8(t *testing.T) {
	dir := t.TempDir()
	w := NewWriter(dir, 0)
	if err := errors.Join(w.Write(Document{Source: "a\xff\xfe\"é", Text: []byte("text")}), w.Close()); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(filepath.Join(dir, writtenName(0)))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	line, err := io.ReadAll(z)
	if want := "a\ufffd\ufffd" + `\"é"`; err != nil || !utf8.Valid(line) || !bytes.Contains(line, []byte(want)) {
		t.Errorf("%q, %v, want %s", line, err, want)
	}
}
