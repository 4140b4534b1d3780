package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

// tree writes files under a new directory and returns it.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read returns all documents of paths, with sources relative to dir, and the report.
func read(t testing.TB, dir string, opt Options, paths ...string) ([]Document, Report) {
	t.Helper()
	for i := range paths {
		paths[i] = filepath.Join(dir, paths[i])
	}
	r, err := Open(paths, opt)
	if err != nil {
		t.Fatal(err)
	}
	var docs []Document
	for d, err := range r.Documents() {
		if err != nil {
			t.Fatal(err)
		}
		d.Source, _ = filepath.Rel(dir, d.Source)
		docs = append(docs, d)
	}
	return docs, r.Report()
}

func counts(r Report) map[Reason]int {
	m := map[Reason]int{}
	for _, c := range r.Rejects {
		m[c.Reason] += c.Count
	}
	return m
}

func gz(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

func zst(s string) string {
	return string(zstdWriter.EncodeAll([]byte(s), nil))
}

var zstdWriter, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))

func TestDirectoryIsReadInSortedOrderAndEachSkipIsCounted(t *testing.T) {
	dir := tree(t, map[string]string{
		"b.go": "package b", "a/z.txt": "zed", "a/b.md": "bee", "empty": "", "c.bin": "a\x00b",
		".git/x": "hidden", ".env": "hidden", "latin.txt": strings.Repeat("\xe9\xe8", 20), "utf16.txt": "\xff\xfea\x00",
	})
	if err := os.Symlink(dir, filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "b.go"), filepath.Join(dir, "again.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	docs, rep := read(t, dir, Options{}, ".")
	want := []Document{
		{Source: "a/b.md", Text: []byte("bee")}, {Source: "a/z.txt", File: 1, Text: []byte("zed")},
		{Source: "again.go", File: 2, Text: []byte("package b")}, // sorts before b.go, which is the same file
	}
	if d := cmp.Diff(want, docs); d != "" {
		t.Error(d)
	}
	wantCounts := map[Reason]int{Hidden: 2, Twice: 2, Dangling: 1, Empty: 1, Binary: 1, NotUTF8: 1, UTF16: 1}
	if d := cmp.Diff(wantCounts, counts(rep)); d != "" {
		t.Error(d)
	}
	if rep.Documents != 3 || rep.Bytes != 15 || rep.Files != 7 {
		t.Errorf("report says %d documents, %d bytes, %d files; want 3, 15, 7", rep.Documents, rep.Bytes, rep.Files)
	}
}

// A directory that curation wrote stands for the documents that it kept, not for its report and lists of duplicates.
func TestCuratedDirectoriesAreTheirDocuments(t *testing.T) {
	files := map[string]string{
		"docs/00000.jsonl.zst": zst(`{"text":"kept"}`), "clusters-2/00000.jsonl.zst": zst(`{"copies":2}`),
		"journal.jsonl": "{}", "report.json": "{}",
	}
	docs, rep := read(t, tree(t, files), Options{}, ".")
	if len(docs) != 1 || string(docs[0].Text) != "kept" || rep.Files != 1 {
		t.Errorf("%+v of %d files", docs, rep.Files)
	}
	delete(files, "report.json") // a directory of somebody else, or one that is not complete
	if _, rep := read(t, tree(t, files), Options{}, "."); rep.Files != 3 {
		t.Errorf("without a report %d files are read, want 3", rep.Files)
	}
	dir := tree(t, map[string]string{"clusters.jsonl": `{"kept":0}`, "report.json": "{}"}) // as deduplication leaves it
	w := NewWriter(filepath.Join(dir, "docs"), 0)
	if err := errors.Join(os.Mkdir(w.dir, 0o777), w.Write(Document{Text: []byte("kept")}), w.Close()); err != nil {
		t.Fatal(err)
	}
	docs, rep = read(t, dir, Options{}, ".")
	if len(docs) != 1 || string(docs[0].Text) != "kept" || rep.Files != 1 {
		t.Errorf("%+v of %d files", docs, rep.Files)
	}
}

func TestExtensionsSelectInDirectoriesButNotNamedFiles(t *testing.T) {
	dir := tree(t, map[string]string{"d/a.go": "a", "d/b.txt": "b", "d/c.go.gz": gz("c"), "e.txt": "e"})
	docs, rep := read(t, dir, Options{Extensions: []string{"go"}}, "d", "e.txt")
	var got []string
	for _, d := range docs {
		got = append(got, string(d.Text))
	}
	if !slices.Equal(got, []string{"a", "c", "e"}) || counts(rep)[Extension] != 1 {
		t.Errorf("read %q, rejected %v; want a c e and one other extension", got, counts(rep))
	}
}

func TestBytesPassUnchangedButForTheByteOrderMark(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "\xef\xbb\xbfone\r\ntwo \xff three"})
	docs, rep := read(t, dir, Options{}, "a.txt")
	if len(docs) != 1 || string(docs[0].Text) != "one\r\ntwo \xff three" || docs[0].Offset != 3 ||
		rep.InvalidUTF8 != 1 {
		t.Errorf("read %+v (%+v)", docs, rep)
	}
}

// Whatever the content and the sizes, the pieces of a text file join to the file, none is longer than allowed, each
// stands at its offset, and compression changes nothing.
func TestPiecesJoinToTheFile(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"word ", "\n", "\n\n", "é", "世", "🙂",
			"longer-word"}), 1, 200).Draw(t, "text"), "")
		opt := Options{
			MaxDocument: rapid.IntRange(40, 300).Draw(t, "max"), Piece: rapid.IntRange(8, 100).Draw(t, "piece"),
		}
		for name, content := range map[string]string{"t.txt": text, "t.txt.gz": gz(text), "t.zst": zst(text)} {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			r, err := Open([]string{path}, opt)
			if err != nil {
				t.Fatal(err)
			}
			joined, n := "", 0
			for d, err := range r.Documents() {
				if err != nil {
					t.Fatal(err)
				}
				if d.Offset != int64(len(joined)) || d.Index != n {
					t.Fatalf("%s: document %d at %d has index %d, offset %d", name, n, len(joined), d.Index, d.Offset)
				}
				if limit := min(opt.Piece, opt.MaxDocument); len(text) > opt.MaxDocument && len(d.Text) > limit {
					t.Fatalf("%s: piece of %d bytes, limit %d", name, len(d.Text), limit)
				}
				joined += string(d.Text)
				n++
			}
			if joined != text || len(text) <= opt.MaxDocument && n != 1 || r.Report().InvalidUTF8 != 0 {
				t.Fatalf("%s: %d bytes with limit %d came back as %d bytes in %d documents, %d with a broken character",
					name, len(text), opt.MaxDocument, len(joined), n, r.Report().InvalidUTF8)
			}
		}
	})
}

// Text of Windows is cut at its blank lines, too.
func TestPiecesEndAtBlankLines(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		dir := t.TempDir()
		text := strings.Repeat("one line"+end+"and another"+end+end, 60)
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		docs, _ := read(t, dir, Options{MaxDocument: 200, Piece: 150}, "a.txt")
		for i, d := range docs {
			if !strings.HasSuffix(string(d.Text), end+end) {
				t.Errorf("line end %q: piece %d of %d ends with %q", end, i, len(docs), d.Text[len(d.Text)-10:])
			}
		}
	}
}

// A NUL byte costs a long text the piece around it, which counts as lost, and not the whole file, which would be
// passed over like an image.
func TestANULByteDoesNotHideALongText(t *testing.T) {
	dir := t.TempDir()
	text := []byte(strings.Repeat("words and words\n", 100))
	text[20] = 0
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	docs, rep := read(t, dir, Options{MaxDocument: 400, Piece: 160}, "a.txt")
	if len(docs) != 9 || rep.Lost == nil || rep.Lost.Documents != 1 || rep.Lost.Bytes != 160 {
		t.Errorf("%d pieces of ten, %+v", len(docs), rep)
	}
}

func TestBrokenLinesAreQuarantinedWithTheirPlace(t *testing.T) {
	content := "\xef\xbb\xbf{\"text\": \"one\"}\n" + // 3..18
		"{\"text\": \"tw\n" + // line 2 at 19
		"\n" +
		"{\"id\": 4}\r\n" +
		"{\"text\": 5}\n" +
		"{\"text\": \"\"}\n" +
		"{\"text\": \"" + strings.Repeat("x", 100) + "\"}\n" +
		"{\"text\": \"nul\\u0000\"}\n" +
		"{\"text\": \"last \\ud83d\\ude42\"}"
	dir := tree(t, map[string]string{"a.jsonl": content})
	var seen []Reject
	docs, rep := read(t, dir, Options{MaxLine: 64, OnReject: func(r Reject) { seen = append(seen, r) }}, "a.jsonl")
	want := []Document{
		{Source: "a.jsonl", Index: 0, Offset: 3, Text: []byte("one")},
		{Source: "a.jsonl", Index: 1, Offset: int64(strings.Index(content, "{\"text\": \"last")),
			Text: []byte("last 🙂")},
	}
	if d := cmp.Diff(want, docs); d != "" {
		t.Error(d)
	}
	wantCounts := map[Reason]int{BadJSON: 1, NoText: 1, TextNoString: 1, Empty: 1, LongLine: 1, Binary: 1}
	if d := cmp.Diff(wantCounts, counts(rep)); d != "" {
		t.Error(d)
	}
	if len(seen) != 6 || seen[0].Line != 2 || seen[0].Offset != 19 || seen[0].Source != filepath.Join(dir, "a.jsonl") ||
		seen[0].Detail == "" {
		t.Errorf("rejects: %+v", seen)
	}
	for _, r := range seen {
		if at := strings.Split(content[3:], "\n")[:r.Line-1]; int64(len(strings.Join(at, "\n"))+1+3) != r.Offset {
			t.Errorf("%s: line %d is reported at byte %d", r.Reason, r.Line, r.Offset)
		}
	}
}

func TestCompressedJSONIsReadAsLinesIfItIsLines(t *testing.T) {
	dir := tree(t, map[string]string{
		"c4.json.gz":      gz("{\"text\":\"a\"}\n{\"text\":\"b\"}\n"),
		"one.json.zst":    zst("{\"text\":\"" + strings.Repeat("long ", 20000) + "\"}"),
		"pretty.json.gz":  gz("{\n  \"text\": \"c\"\n}\n"),
		"plain.json":      "{\"text\":\"d\"}\n",
		"pretty.jsonl.gz": gz("{\n}\n"),
	})
	docs, rep := read(t, dir, Options{}, ".")
	var got []string
	for _, d := range docs {
		got = append(got, string(d.Text[:min(10, len(d.Text))]))
	}
	want := []string{"a", "b", "long long ", "{\"text\":\"d", "{\n  \"text\""}
	if d := cmp.Diff(want, got); d != "" || counts(rep)[BadJSON] != 2 {
		t.Errorf("%s%v", d, rep)
	}
}

func TestNestingIsLimitedAsInEncodingJSON(t *testing.T) {
	for _, depth := range []int{9999, 10000} {
		line := []byte("{\"text\":\"t\",\"x\":" + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}")
		var v any
		err := new(object).parse(line, "text", true)
		if want := json.Unmarshal(line, &v); (err == nil) != (want == nil) {
			t.Errorf("%d arrays in an object: %v, encoding/json says %v", depth, err, want)
		}
	}
}

func TestDamagedStreamsKeepWhatCameBefore(t *testing.T) {
	var lines strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&lines, "{\"text\": \"document %d %x\"}\n", i, i*2654435761)
	}
	g, z := gz(lines.String()), zst(lines.String())
	flipped := []byte(g)
	flipped[len(g)/2] ^= 0x10
	dir := tree(t, map[string]string{
		"cut.jsonl.gz": g[:len(g)/2], "flip.jsonl.gz": string(flipped), "cut.json.zst": z[:len(z)/2],
		"not.txt.gz": "plain text", "ok.txt": "fine", "cut.txt.gz": g[:len(g)/2],
	})
	docs, rep := read(t, dir, Options{}, ".")
	if n := counts(rep)[Corrupt]; n != 5 {
		t.Errorf("%d files counted as corrupt, want 5: %v", n, rep)
	}
	by := map[string]int{}
	for _, d := range docs {
		if strings.HasSuffix(d.Source, ".txt.gz") {
			t.Errorf("half a document was delivered from %s", d.Source)
		} else if strings.HasPrefix(d.Source, "cut") &&
			!strings.HasPrefix(string(d.Text), fmt.Sprintf("document %d ", d.Index)) {
			t.Fatalf("%s document %d is %q", d.Source, d.Index, d.Text)
		}
		by[d.Source]++
	}
	if by["cut.jsonl.gz"] == 0 || by["cut.jsonl.gz"] >= 20000 || by["cut.json.zst"] == 0 || by["ok.txt"] != 1 {
		t.Errorf("documents by file: %v", by)
	}
}

// A bomb is given up early, in bounded memory.
func TestBombIsStopped(t *testing.T) {
	bomb := strings.Repeat(gz(strings.Repeat("a", 1<<20)), 400)
	dir := tree(t, map[string]string{"bomb.jsonl.gz": bomb, "ok.txt": "fine"})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	docs, rep := read(t, dir, Options{MaxLine: 1 << 20, MaxRatio: 100}, ".")
	runtime.ReadMemStats(&after)
	if counts(rep)[Bomb] != 1 || len(docs) != 1 {
		t.Errorf("rejects %v, %d documents; want one bomb, one document", counts(rep), len(docs))
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
		t.Errorf("reading the bomb allocated %d bytes", got)
	}
}

func TestErrorsNameThePath(t *testing.T) {
	dir := tree(t, map[string]string{"empty.txt": "", "bin": "\x00\x01", "d/.hidden": "x"})
	if _, err := Open(nil, Options{}); err == nil {
		t.Error("no paths: no error")
	}
	missing := filepath.Join(dir, "missing.txt")
	if _, err := Open([]string{missing}, Options{}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("missing file: %v", err)
	}
	for name, reason := range map[string]Reason{"empty.txt": Empty, "bin": Binary, "d": Hidden} {
		path := filepath.Join(dir, name)
		r, err := Open([]string{path}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range r.Documents() {
			last = err
		}
		if last == nil || !strings.Contains(last.Error(), path) || !strings.Contains(last.Error(), string(reason)) {
			t.Errorf("%s: the error is %v, it should name the path and %q", name, last, reason)
		}
	}
}

func TestDocumentsStartsAgain(t *testing.T) {
	dir := tree(t, map[string]string{"a": "1", "b": "2", "c": "\x00"})
	r, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range r.Documents() {
		break
	}
	n := 0
	for range r.Documents() {
		n++
	}
	if rep := r.Report(); n != 2 || rep.Documents != 2 || rep.Rejects[0].Count != 1 || r.BytesRead() != r.Size() {
		t.Errorf("second pass: %d documents, %+v, %d of %d bytes", n, rep, r.BytesRead(), r.Size())
	}
}

// Below a directory, data sets and runs are skipped, and of curated text only the documents are read.
func TestWhatWasMadeIsNoText(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.txt": "one", "data/dataset.json": `{"format": "anneal-dataset"}`, "data/tokenizer.json": "{}",
		"runs/go/config.yaml": "seed: 1", "runs/go/journal.jsonl": "{}", "other/dataset.json": `{"files": 3}`,
		"clean/report.json": "{}", "clean/docs/" + writtenName(0): "", "clean/kept.txt": "x",
	})
	docs, rep := read(t, dir, Options{}, ".")
	if len(docs) != 2 || rep.Rejects[0].Reason != Made || rep.Rejects[0].Count != 2 {
		t.Errorf("%d documents, rejected %v, want two and two directories", len(docs), rep.Rejects)
	}
	if _, err := Open([]string{filepath.Join(dir, "data")}, Options{}); err == nil ||
		!strings.Contains(err.Error(), "a data set or a run, not text") {
		t.Errorf("a data set by name: %v", err)
	}
}

// A file that the command reads as something else is text only if the user names it.
func TestFilesThatAreNoText(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "one", "in/tok.json": "{}", "in/b.txt": "two"})
	opt := Options{Skip: []string{filepath.Join(dir, "in/tok.json")}}
	for in, want := range map[string]int{".": 2, "in": 1, "in/tok.json": 1} {
		if _, rep := read(t, dir, opt, in); rep.Documents != want || rep.Rejected() != 0 {
			t.Errorf("%s: %d documents, want %d; rejected %v", in, rep.Documents, want, rep.Rejects)
		}
	}
}

// What a command writes below its input is not read, before it exists and after, whatever leads there. The report does
// not mention it. A path in the output that the user names is read, the output itself is refused.
func TestTheOutputIsNoInput(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.txt": "one", "real/b.txt": "two", "real/out/old.txt": "old", "real/outer.txt": "three",
		"real/out/in/c.txt": "four", "real/.hidden/d.txt": "five",
	})
	for link, to := range map[string]string{"link": "real", "z": "real/out/in", "later": "real/new"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	texts := func(out string, paths ...string) (all []string) {
		docs, _ := read(t, dir, Options{Out: filepath.Join(dir, out)}, paths...)
		for _, d := range docs {
			all = append(all, string(d.Text))
		}
		return all
	}
	for _, c := range []struct {
		out, in string
		want    []string
	}{
		{"link/out", ".", []string{"one", "two", "three"}},
		{"real/out/", ".", []string{"one", "two", "three"}},
		{"real/out/in/c.txt", "real", []string{"two", "old", "three"}},
		{"real/out", "real/out/in", []string{"four"}},
		{"other", "link", []string{"two", "four", "old", "three"}},
	} {
		if got := texts(c.out, c.in); !slices.Equal(got, c.want) {
			t.Errorf("--out %s of %s: %q, want %q", c.out, c.in, got, c.want)
		}
	}
	for _, out := range []string{"real/.new", "later"} {
		_, first := read(t, dir, Options{Out: filepath.Join(dir, out)}, "real")
		to, err := resolve(filepath.Join(dir, out))
		if err == nil {
			err = errors.Join(os.MkdirAll(to, 0o755), os.WriteFile(filepath.Join(to, "new.txt"), []byte("new"), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
		_, again := read(t, dir, Options{Out: filepath.Join(dir, out)}, "real")
		if d := cmp.Diff(first, again); d != "" || first.Documents != 4 {
			t.Errorf("--out %s: %v; %s", out, first, d)
		}
	}
	for _, in := range []string{"real/out", "z/.."} {
		if _, err := Open([]string{dir + "/" + in}, Options{Out: filepath.Join(dir, "link/out")}); err == nil ||
			!strings.Contains(err.Error(), in+": it is the output too\n  ") {
			t.Errorf("the output as input %s: %v", in, err)
		}
	}
}

// Zeros after gzip are padding. Anything else is damage, and so is a member that is cut off anywhere.
func TestPaddedGzipIsRead(t *testing.T) {
	zeros := strings.Repeat("\x00", 10_000)
	named := "\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x00name" // ends in the name of the file
	for name, c := range map[string]struct {
		rest string
		lost bool
	}{
		"nothing": {"", false}, "a zero": {"\x00", false}, "zeros": {zeros, false},
		"a member and zeros": {gz("") + zeros, false}, "a line end": {"\r\n", true},
		"text in zeros": {zeros + "x" + zeros, true}, "a member in zeros": {"\x00" + gz("text"), true},
		"half a member": {gz("text")[:15], true}, "half a name": {named, true}, "a magic": {"\x1f\x8b", true},
		"half a magic": {"\x1f", true},
	} {
		files := map[string]string{"a.txt.gz": gz("first ") + gz("second") + c.rest, "b.txt": "other"}
		docs, rep := read(t, tree(t, files), Options{}, ".")
		want := 2
		if c.lost {
			want = 1
		}
		if len(docs) != want || !c.lost && string(docs[0].Text) != "first second" ||
			(counts(rep)[Corrupt] > 0) != c.lost {
			t.Errorf("%s: %d documents, %v", name, len(docs), rep)
		}
	}
}
