package run

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRedaction(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "go")
	r := newRedactor(runDir(dir))
	r.add(`D:\home of\carol`, "~")
	r.add(`OFFICE\carol`, "USER")
	const hook = "  webhook: https://hooks.slack.com/services/T0/B0/key # command line"
	for was, want := range map[string]string{
		hook:                        "  webhook: REDACTED # command line",
		"  webhook: \"\" # default": "  webhook: REDACTED # default",
		"at https://bob:pass@example.com/x?token=abc it":    "at https://example.com/REDACTED it",
		"trackio_url: http://10.0.0.1:7860?write_token=abc": "trackio_url: http://10.0.0.1:7860",
		"  path: /mnt/secret/client/web # a.yaml:3":         "  path: …/web # a.yaml:3",
		"\t/usr/lib/go/src/runtime/panic.go:770 +0x132":     "\t…/panic.go:770 +0x132",
		`"path":"/mnt/x/web","at":1`:                        `"path":"…/web","at":1`,
		"web=/mnt/x/web, code=../y/code":                    "web=…/web, code=…/code",
		`C:\Users\bob\data\web is gone`:                     `…/web is gone`,
		`{"path":"C:\\Users\\bob\\data\\web"}`:              `{"path":"…/web"}`,
		`{"path":"D:\\home of\\carol\\x"}`:                  `{"path":"~\\x"}`,
		"by carol":                                          "by USER",
		"at https://bob:p@ss@example.com/x":                 "at https://example.com/REDACTED",
		"at https://bob:p?ss@example.com/x":                 "at https://REDACTED",
		"at https://bob:p/ss@example.com/x":                 "at https://REDACTED/REDACTED",
		filepath.Join(dir, "checkpoints") + " is full":      "RUN/checkpoints is full",
		"lr 1e-3 · 12/2400 steps, 3.1 bits/byte, a/b":       "lr 1e-3 · 12/2400 steps, 3.1 bits/byte, a/b",
		`{"step":3,"loss":1.5,"source_loss":{"web":1.25}}`:  `{"step":3,"loss":1.5,"source_loss":{"web":1.25}}`,
	} {
		if got := string(r.redact([]byte(was))); got != want {
			t.Errorf("%q\nbecomes %q\nwant    %q", was, got, want)
		}
	}
}

// The archive holds the end of what grows, nothing of checkpoints and tokenizer but their sizes, and whatever a damaged
// run still has.
func TestDebugArchive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("metrics.jsonl", strings.Repeat("{\"step\":1,\"loss\":3}\n", 100_000)+"{\"step\":2}\n")
	write("tokenizer.json", "a secret word")
	write("checkpoints/step-1/model.safetensors", "weights")
	write("exit.json", `{"rank":0,"host":"vm","code":1}`) // "vm" is too short a name to be replaced wherever it is
	write("crash/2026-stall.txt", "goroutine 1 [running]:\n\t/home/x/anneal/run/loop.go:3\n")
	b, err := NewDebug(dir)
	if err != nil {
		t.Fatal(err)
	}
	b.Add("doctor.txt", []byte("cpu"))
	var file bytes.Buffer
	if err := b.Write(&file, "anneal-debug"); err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		got[strings.TrimPrefix(h.Name, "anneal-debug/")] = string(text)
	}
	if m := got["metrics.jsonl"]; len(m) > debugTail || !strings.HasSuffix(m, "{\"step\":2}\n") || m[0] != '{' {
		t.Errorf("metrics: %d bytes", len(m))
	}
	if !strings.Contains(got["files.txt"], "checkpoints/step-1/model.safetensors") ||
		!strings.Contains(got["config.yaml.missing"], "config.yaml") || got["doctor.txt"] != "cpu" ||
		got["exit.json"] != `{"rank":0,"host":"HOST","code":1}` ||
		!strings.Contains(got["crash/2026-stall.txt"], "…/loop.go:3") {
		t.Errorf("the archive holds %v", got)
	}
	for name, text := range got {
		if strings.Contains(text, "secret") || strings.Contains(text, "weights") || strings.Contains(text, dir) {
			t.Errorf("%s holds %q", name, text)
		}
	}
	for _, other := range []string{"nothing", "crash", "tokenizer.json"} {
		if _, err := NewDebug(filepath.Join(dir, other)); !errors.Is(err, ErrNoRun) {
			t.Errorf("%s is no run: %v", other, err)
		}
	}
}
