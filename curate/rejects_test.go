package curate

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/corpus"
)

// rejects.jsonl lists all that the report counts, each with its place, and goes when there is nothing to list.
func TestEveryRejectIsListed(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	files := map[string]string{
		"a.jsonl": "{\"text\":\"fine\"}\n" + strings.Repeat("{broken\n", 200), "b.txt": "nul\x00", ".hidden": "h",
		"c.jsonl": "{\"id\":1}\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(in, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Pipeline: mustParse(t, "stages: [normalize]"), Paths: []string{in}, Dir: out, Split: 600}
	done, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(out, "rejects.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) != 203 || done.Report.Input.Rejected() != 203 || done.Splits < 3 {
		t.Errorf("%d lines, %d rejects counted, want 203 of %d splits",
			len(lines), done.Report.Input.Rejected(), done.Splits)
	}
	offset := int64(len("{\"text\":\"fine\"}\n"))
	for i, line := range lines {
		var r corpus.Reject
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		want := corpus.Reject{
			Source: filepath.Join(in, "a.jsonl"), Offset: offset, Reason: corpus.BadJSON, Documents: 1,
			Bytes: int64(len("{broken\n")),
		}
		switch i {
		case 0:
			want = corpus.Reject{Source: filepath.Join(in, ".hidden"), Reason: corpus.Hidden}
		case 201:
			want = corpus.Reject{Source: filepath.Join(in, "b.txt"), Reason: corpus.Binary}
		case 202:
			want = corpus.Reject{
				Source: filepath.Join(in, "c.jsonl"), Reason: corpus.NoText, Documents: 1,
				Bytes: int64(len("{\"id\":1}\n")),
			}
		default:
			offset += int64(len("{broken\n"))
		}
		r.Line, r.Detail = 0, ""
		if r != want {
			t.Errorf("line %d is %+v, want %+v", i, r, want)
		}
	}

	for name := range files {
		if err := os.Remove(filepath.Join(in, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(in, "a.txt"), []byte("fine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(out, "rejects*")); len(left) > 0 {
		t.Errorf("nothing is rejected, and %q are there", left)
	}
}

// A document whose line no command would read again is lost where it is read, not later.
func TestDocumentsTooLongToWriteAreLost(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	begin := `{"id":1,"text":"`
	long := begin + strings.Repeat("x", corpus.LongestLine-len(begin)-2) + "\"}\n"
	short := begin + strings.Repeat("\\n", 1<<20) + "x\"}\n"
	writeFiles(t, in, map[string]string{"a.jsonl": `{"text":"first"}` + "\n" + long + short})
	o := Options{Pipeline: mustParse(t, "stages: [normalize]"), Paths: []string{in}, Dir: out}
	done, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	input := done.Report.Input
	if done.Report.Documents != 2 || done.Report.Kept != 2 || input.Lost == nil || input.Lost.Documents != 1 {
		t.Errorf("kept %d of %d documents; %s", done.Report.Kept, done.Report.Documents, input)
	}
	list := contents(t, out)["rejects.jsonl"]
	if !strings.Contains(list, `"offset":17,"reason":"too long for a line of the output","documents":1`) {
		t.Errorf("rejects.jsonl holds %s", list)
	}
	if again := texts(t, filepath.Join(out, "docs")); len(again) != 2 {
		t.Errorf("%d documents are read again", len(again))
	}
}
