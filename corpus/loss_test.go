package corpus

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// What is lost is counted in documents and bytes, what is skipped is not; splits add up to the whole.
func TestLossesAreCounted(t *testing.T) {
	lines := strings.Repeat("{\"text\":\"a document of some words\"}\n", 1000)
	packed := gz(lines)
	good := goldenParquet(t, "plain-v1")
	for name, c := range map[string]struct {
		content string
		want    *Loss // nil: nothing is lost
	}{
		"a.jsonl": {"{\"text\":\"a\"}\n{broken\n{\"id\":1}\n{\"text\":\"\"}\n{\"text\":null}\n",
			&Loss{Documents: 2, Bytes: 17}},
		"b.txt":       {"\xff\xfea\x00b\x00", &Loss{Documents: 1, Bytes: 6}},
		"c.png":       {"\x89PNG\x00", nil},
		"c.bin":       {strings.Repeat("\x83\x01\xe4\xfd a", 20), nil},
		"c.latin":     {strings.Repeat("d\xe9j\xe0 ", 20), &Loss{Documents: 1, Bytes: 100}},
		"c.json.zst":  {zst(`{"type":"map"}` + "\n"), nil},
		"c.json.gz":   {gz("{\"type\":\"map\"}\n{\"text\":\"t\"}\n"), &Loss{Documents: 1, Bytes: 15}},
		"d.txt":       {"", nil},
		"e.jsonl.gz":  {packed[:len(packed)-4], &Loss{Documents: 1, FileCount: 1}},
		"f.jsonl.zst": {"", &Loss{Documents: 1, FileCount: 1}},
		"g.parquet":   {good[:len(good)-10], &Loss{Documents: 1, FileCount: 1, Bytes: int64(len(good) - 10)}},
		"h.warc": {wet("u", "text") + warcRecord("response", "u", "application/http", httpReply("404 Gone", "")),
			nil},
		"i.warc": {wet("u", "text") + wet("u", "nul\x00"), &Loss{Documents: 1, Bytes: 4}},
		"j.list": {"text", nil},
		"k.parquet": {goldenParquet(t, "list"),
			&Loss{Documents: 1, FileCount: 1, Bytes: int64(len(goldenParquet(t, "list")))}},
		"l.jsonl.zst": {zst(lines)[:40], &Loss{Documents: 1, FileCount: 1}},
		"m.txt.gz":    {gz("text" + strings.Repeat("x\n", 5000))[:40], &Loss{Documents: 1, FileCount: 1}},
		"n.parquet":   {damaged(good, 2000), &Loss{Documents: 30, FileCount: 1}},
		"p.warc.gz": {gz(wet("u", "text")) + strings.Repeat("no member ", 100),
			&Loss{Documents: 1, FileCount: 1, Bytes: 1000}},
		"q.warc":       {wet("u", "text") + wet("u", "text")[:100], &Loss{Documents: 1, FileCount: 1, Bytes: 100}},
		"o.parquet.gz": {"no gzip", &Loss{Documents: 1, FileCount: 1, Bytes: 7}},
		"r.parquet.gz": {gz(good), &Loss{Documents: 1, FileCount: 1}},
		"s.jsonl.xz":   {"\xfd7zXZ\x00", &Loss{Documents: 1, FileCount: 1, Bytes: 6}},
		"t.warc.bz2":   {"BZh9\x00", &Loss{Documents: 1, FileCount: 1, Bytes: 5}},
		"u.pass.bz2":   {"BZh9\x00", nil}, // a test of a decompressor, say
	} {
		dir := tree(t, map[string]string{name: c.content, "z.txt": "fine"})
		_, rep := read(t, dir, Options{}, ".")
		got := rep.Lost
		if got != nil && (got.FileCount != len(got.Files) || got.FileCount == 1 &&
			(got.Files[0].Source != filepath.Join(dir, name) || got.Files[0].Bytes != got.Bytes)) {
			t.Errorf("%s: files %+v of %+v", name, got.Files, got)
		}
		if got != nil && c.want != nil {
			got = &Loss{Documents: got.Documents, Bytes: got.Bytes, FileCount: got.FileCount}
			if c.want.FileCount > 0 && c.want.Bytes == 0 {
				c.want.Bytes = got.Bytes // as many as are known
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: lost are %+v, want %+v\n%v", name, got, c.want, rep)
		}
		var sum Report
		r, err := Open([]string{dir}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Splits(10) {
			part := s.Open(nil)
			for range part.Documents() {
			}
			sum.Add(part.Report())
		}
		if (sum.Lost == nil) != (c.want == nil) ||
			sum.Lost != nil && (sum.Lost.Documents != c.want.Documents || sum.Lost.FileCount != c.want.FileCount) {
			t.Errorf("%s: in splits lost are %+v, want %+v", name, sum.Lost, c.want)
		}
	}
}

// damaged is content with some bytes changed.
func damaged(content string, at int) string {
	b := []byte(content)
	for i := range b[at : at+10] {
		b[at+i] ^= 0x55
	}
	return string(b)
}

// What is skipped, what is lost alone and what is lost with the rest of its file are counted apart, also in splits.
func TestSkippedAndLostAreCountedApart(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.png": "\x00", "b.jsonl": "{\"text\":\"nul \\u0000\"}\n{\"id\":1}\n{\"text\":\"fine\"}\n", "c.png": "\x00",
		"d.parquet": goldenParquet(t, "list"),
	})
	r, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range r.Documents() {
	}
	var sum Report
	for _, s := range r.Splits(10) {
		part := s.Open(nil)
		for range part.Documents() {
		}
		sum.Add(part.Report())
	}
	for _, rep := range []Report{r.Report(), sum} {
		for _, want := range []string{
			"skipped 2 files (binary (NUL or control bytes))", "lost 1 document (binary (NUL or control bytes))",
			"lost 1 document (no text field)", "lost all or the rest of 1 file (no text field)",
		} {
			if !strings.Contains(rep.String(), want) {
				t.Errorf("%q is missing in\n%s", want, rep)
			}
		}
	}
}

// A file that cannot be opened is lost with all its bytes.
func TestUnreadableFileIsLost(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "text of a", "b.txt": "text"})
	r, err := Open([]string{dir}, Options{})
	if err == nil {
		err = os.Remove(filepath.Join(dir, "a.txt"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for range r.Documents() {
	}
	if l := r.Report().Lost; l == nil || l.FileCount != 1 || l.Bytes != 9 || l.Files[0].Reason != Unreadable {
		t.Errorf("lost are %+v", l)
	}
}

// A share up to the limit is let pass, a larger one is not, and a file that is damaged never.
func TestMaxLoss(t *testing.T) {
	rep := Report{Documents: 990, Bytes: 9900, Lost: &Loss{Documents: 10, Bytes: 100}}
	for limit, passes := range map[MaxLoss]bool{0: false, 0.0099: false, 0.01: true, 1: true} {
		if err := limit.Check(rep); (err == nil) != passes {
			t.Errorf("1 %% lost, limit %v: %v", limit, err)
		}
	}
	rep.Lost.Bytes = 200
	loss := new(LossError)
	if err := MaxLoss(0.01).Check(rep); !errors.As(err, &loss) ||
		!strings.Contains(err.Error(), "10 of 1,000 documents (1 %) and 200 B could not be used; the limit is 1 %") {
		t.Errorf("2 %% of the bytes lost: %v", err)
	}
	rep.Lost = &Loss{
		Documents: 1, Bytes: 1, FileCount: 1,
		Files: []LostFile{{Source: "a.gz", Reason: Corrupt, Detail: "cut", Documents: 1, Bytes: 1}},
	}
	if err := MaxLoss(1).Check(rep); err == nil || !strings.Contains(err.Error(), "1 file could not be read") ||
		!strings.Contains(err.Error(), "a.gz: damaged or cut off (cut); at least 1 document and 1 B lost") {
		t.Errorf("a damaged file: %v", err)
	}
	if err := MaxLoss(0).Check(Report{Documents: 1}); err != nil {
		t.Errorf("nothing lost: %v", err)
	}
}

// Losses of many files are counted, and the first hundred named; parts of one file are one.
func TestLossesAddUp(t *testing.T) {
	var sum *Loss
	for i := range 250 {
		name := strings.Repeat("x", 1+i/2)
		sum = sum.Add(&Loss{
			Documents: 1, Bytes: 10, FileCount: 1, Files: []LostFile{{Source: name, Documents: 1, Bytes: 10}},
		})
	}
	if sum.Documents != 250 || sum.Bytes != 2500 || len(sum.Files) != maxLostFiles || sum.FileCount < 125 ||
		sum.FileCount > 150 || sum.Files[3].Documents != 2 {
		t.Errorf("%d documents, %d bytes, %d files of %d", sum.Documents, sum.Bytes, len(sum.Files), sum.FileCount)
	}
}
