package corpus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"pgregory.net/rapid"
)

// frames compresses text in frames of n bytes each, with a skippable frame before the second.
func zstFrames(text string, n int) string {
	var b strings.Builder
	for i := 0; i < len(text); i += n {
		if i == n {
			b.WriteString("\x5a\x2a\x4d\x18\x05\x00\x00\x00hello")
		}
		b.WriteString(zst(text[i:min(i+n, len(text))]))
	}
	return b.String()
}

// bgzf compresses text in gzip members of n bytes each that state their size.
func bgzf(text string, n int) string {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(nil, gzip.HuffmanOnly)
	for i := 0; i <= len(text); i += n { // an empty one last, as bgzip does
		var b bytes.Buffer
		w.Reset(&b)
		w.Extra = []byte{'X', 'Y', 1, 0, 7, 'B', 'C', 2, 0, 0, 0}
		w.Write([]byte(text[i:min(i+n, len(text))]))
		w.Close()
		binary.LittleEndian.PutUint16(b.Bytes()[12+9:], uint16(b.Len()-1))
		out.Write(b.Bytes())
	}
	return out.String()
}

// Whatever the files and the size of the splits, the documents of all splits are those of the whole reading: the same
// texts in the same order at the same places, and the same rejects.
func TestSplitsJoinToTheWhole(t *testing.T) {
	dir := t.TempDir()
	most := 0
	table, err := os.ReadFile("../internal/parquet/testdata/dictionary-zstd-v1.parquet")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var lines strings.Builder
		if rapid.Bool().Draw(t, "bom") {
			lines.Write(bom)
		}
		for i := range rapid.IntRange(0, 30).Draw(t, "lines") {
			switch rapid.IntRange(0, 9).Draw(t, "line") {
			case 0:
				lines.WriteString("\n")
			case 1:
				lines.WriteString("{broken\n")
			case 2:
				fmt.Fprintf(&lines, "{\"text\":%q}\n", strings.Repeat("long ", rapid.IntRange(20, 300).Draw(t, "n")))
			default:
				fmt.Fprintf(&lines, "{\"text\":\"document %d\"}\n", i)
			}
		}
		lines.WriteString(rapid.SampledFrom([]string{"", "{\"text\":\"last\"}", "{"}).Draw(t, "last"))
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"word ", "\n", "\n\n", "é", "世", "🙂",
			"longer-word", "\x00", "\xff"}), 80, 160).Draw(t, "text"), "")
		text = strings.Repeat(text, rapid.IntRange(0, 5).Draw(t, "times"))
		frame := rapid.IntRange(1, 400).Draw(t, "frame")
		os.RemoveAll(filepath.Join(dir, "in"))
		for name, content := range map[string]string{
			"a.jsonl": lines.String(), "b.jsonl.zst": zstFrames(lines.String(), frame),
			"c.jsonl.gz": bgzf(lines.String(), frame), "d.txt": text,
			"e.jsonl.gz": gz(lines.String()), "f.txt.gz": bgzf(text, frame),
			"g.json.zst": zstFrames(lines.String(), frame), "h.txt": "short", "i.txt": "text",
			"l.txt":     strings.NewReplacer("\x00", "\n", "\xff", "y").Replace(text),
			"j.parquet": string(table), "k.wet": wet("u", "text") + "junk\n" + wet("u", "text"),
		} {
			os.MkdirAll(filepath.Join(dir, "in"), 0o755)
			if err := os.WriteFile(filepath.Join(dir, "in", name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var rejects []Reject
		opt := Options{
			MaxDocument: rapid.IntRange(8, 300).Draw(t, "max"), Piece: rapid.IntRange(4, 10).Draw(t, "piece"),
			MaxLine: rapid.IntRange(100, 2000).Draw(t, "max line"),
			OnReject: func(r Reject) {
				if r.Reason != Empty { // of a file without any text: its parts do not know
					r.Line = 0
					rejects = append(rejects, r)
				}
			},
		}
		r, err := Open([]string{filepath.Join(dir, "in")}, opt)
		if err != nil {
			t.Fatal(err)
		}
		var want []Document
		for d, err := range r.Documents() {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, d)
		}
		wantRejects := rejects
		rejects = nil
		size := int64(rapid.IntRange(40, 2000).Draw(t, "size"))
		splits := r.Splits(size)
		most = max(most, len(splits))
		var got []Document
		var bytes int64
		for _, s := range splits {
			n := map[int]int{}
			part := s.Open(opt.OnReject)
			bytes += s.Size
			if s.Files > 1 && s.Size > size {
				t.Fatalf("%d files of %d bytes are one split of %d", s.Files, s.Size, size)
			}
			for d, err := range part.Documents() {
				if err != nil {
					t.Fatal(err)
				}
				if d.Index != n[d.File] || r.files[d.File] != d.Source {
					t.Fatalf("split %+v: document %d of file %d is %d of %s", s, n[d.File], d.File, d.Index, d.Source)
				}
				n[d.File]++
				got = append(got, d)
			}
		}
		for i := range got {
			got[i].Index = 0
		}
		for i := range want {
			want[i].Index = 0
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%d splits of %d bytes, frames of %d, %+v:\n%s", len(splits), size, frame, opt.withDefaults(), d)
		}
		if d := cmp.Diff(wantRejects, rejects); d != "" {
			t.Fatalf("%d splits of %d bytes: rejects\n%s", len(splits), size, d)
		}
		if bytes != r.Size() {
			t.Fatalf("the splits have %d bytes, the input %d", bytes, r.Size())
		}
	})
	if most < 50 {
		t.Errorf("at most %d splits: no test", most)
	}
}

// Each way to cut a file is taken: a larger file of that kind becomes about as many splits as it has bytes for, and
// one that cannot be cut stays one.
func TestFilesAreCutWhereTheyCanBe(t *testing.T) {
	line := "{\"text\":\"some words, and their number\"}\n"
	lines := strings.Repeat(line, 5000)
	var odd strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&odd, "{\"text\":\"%d\"}\n", i*i*i*7919)
	}
	opt := Options{Piece: 64, MaxDocument: 100}
	for name, c := range map[string]struct {
		content string
		most    bool
	}{
		"a.jsonl": {lines, true}, "a.txt": {lines, true}, "a.jsonl.zst": {zstFrames(odd.String(), 5000), true},
		"a.json.zst": {zstFrames(odd.String(), 5000), true},
		"a.jsonl.gz": {bgzf(odd.String(), 5000), true}, "b.jsonl.gz": {gz(odd.String()), false},
		"b.jsonl.zst": {zst(odd.String()), false},
		"b.txt.zst":   {zstFrames(odd.String(), 5000), false}, "b.txt": {"\x00" + lines, false},
		"b.json.gz": {bgzf("{\n"+odd.String(), 5000), false},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(c.content), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Open([]string{path}, opt)
		if err != nil {
			t.Fatal(err)
		}
		size := r.Size() / 7
		splits := r.Splits(size)
		if c.most && (len(splits) < 5 || len(splits) > 8) || !c.most && len(splits) != 1 {
			t.Errorf("%s of %d bytes is %d splits of %d", name, r.Size(), len(splits), size)
		}
	}
}

func TestIdentityChangesWithTheFileAndThePart(t *testing.T) {
	dir := tree(t, map[string]string{"a.jsonl": strings.Repeat("{\"text\":\"a\"}\n", 100), "b.txt": "b", "c.txt": "c"})
	seen := map[string]int{}
	for i := range 3 {
		r, err := Open([]string{dir}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		splits := r.Splits(300)
		if len(splits) != 5 {
			t.Fatalf("%d splits, want four of a.jsonl and one of b and c", len(splits))
		}
		for _, s := range splits {
			seen[s.Identity()]++
		}
		if i == 1 {
			if err := os.WriteFile(filepath.Join(dir, "c.txt"), []byte("d"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d identities of 5 splits of which one changed", len(seen))
	}
}
