//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"golang.org/x/sys/unix"
)

// Every flag that names a file to write has the type that handles links, pipes and standard output.
func TestFlagsOfFilesToWriteAreOutFiles(t *testing.T) {
	count := 0
	kong.Visit(kong.Must(&cli{}).Model, func(n kong.Visitable, next kong.Next) error {
		if f, ok := n.(*kong.Flag); ok && (f.Name == "out" || f.Name == "svg") && f.PlaceHolder == "FILE" {
			count++
			if _, ok := f.Target.Interface().(outFile); !ok {
				t.Errorf("--%s is a %T: %s", f.Name, f.Target.Interface(), f.Help)
			}
			if f.Tag.Get("example") == "" {
				t.Errorf("--%s does not say what such a file may be called: %s", f.Name, f.Help)
			}
		}
		return next(nil)
	})
	if count < 10 {
		t.Errorf("only %d flags name files to write", count)
	}
}

// Every command that writes one file writes the same bytes to a file, through links, into a pipe, and to standard
// output, which then receives nothing else. A device stays a device. Other targets are refused.
func TestOneFileGoesWhereItIsSent(t *testing.T) {
	w := newWorkshop(t)
	full, null := outputDevice(t, "full", 7), outputDevice(t, "null", 3)
	examples := []string{
		"--label", "code=" + w.path("text"), "--label", "more=" + w.path("run.yaml"), "--holdout", "0", "--dim", "2",
		"--epoch", "1", "--minn", "2", "--maxn", "3", "--bucket", "1000",
	}
	w.object(exitOK, append([]string{"data", "classifier", "train", "--out", w.path("q.bin")}, examples...)...)
	for name, c := range map[string]struct {
		flag string
		args []string
	}{
		"tokenizer train": {"--out", []string{"tokenizer", "train", "--vocab", "280", w.path("text")}},
		"tokenizer sweep": {"--svg",
			[]string{"tokenizer", "sweep", "--vocab", "270,280", "--val", w.path("text"), w.path("text")}},
		"classifier train":    {"--out", append([]string{"data", "classifier", "train"}, examples...)},
		"classifier quantize": {"--out", []string{"data", "classifier", "quantize", w.path("q.bin")}},
		"attention show":      {"--svg", []string{"attention", "show", "window:16", "--len", "64"}},
		"data inspect":        {"--svg", []string{"data", "inspect", w.path("data"), "--context", "32"}},
		"lr-find":             {"--svg", []string{"lr-find", w.path("run.yaml"), "--steps", "30"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			to := func(path string) (code int, stdout []byte, stderr string) {
				return withStdout(t, append(c.args, c.flag, path)...)
			}
			if code, _, errs := to(dir + "/new/file"); code != exitOK {
				t.Fatalf("exit %d: %s", code, errs)
			}
			want, err := os.ReadFile(dir + "/new/file")
			if err != nil || len(want) == 0 {
				t.Fatalf("%d bytes, %v", len(want), err)
			}
			same := func(where string, got []byte) {
				t.Helper()
				if name == "tokenizer sweep" { // its chart contains measured speeds
					if !bytes.HasPrefix(got, want[:5]) || !bytes.HasSuffix(got, want[len(want)-7:]) {
						t.Errorf("%s holds %.40q", where, got)
					}
				} else if !bytes.Equal(got, want) {
					t.Errorf("%s holds %.40q, %d bytes, the file %d", where, got, len(got), len(want))
				}
			}
			link := filepath.Join(dir, "link")
			if err := os.Symlink("new/made", link); err != nil {
				t.Fatal(err)
			}
			for range 2 { // dangling at first
				if code, _, errs := to(link); code != exitOK {
					t.Errorf("a link: exit %d: %s", code, errs)
				}
				got, _ := os.ReadFile(dir + "/new/made")
				same("what a link names", got)
			}
			if to, err := os.Readlink(link); to != "new/made" {
				t.Errorf("the link names %q, %v", to, err)
			}
			for _, path := range []string{"-", "/dev/stdout"} {
				code, out, errs := to(path)
				if code != exitOK || errs == "" {
					t.Errorf("%s: exit %d: %s", path, code, errs)
				}
				same("standard output as "+path, out)
			}
			pipe := dir + "/pipe"
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			read := make(chan []byte)
			go func() {
				got, _ := os.ReadFile(pipe)
				read <- got
			}()
			if code, _, errs := to(pipe); code != exitOK {
				t.Errorf("a pipe: exit %d: %s", code, errs)
			}
			same("a pipe", <-read)
			if code, _, errs := to(null); code != exitOK {
				t.Errorf("a device: exit %d: %s", code, errs)
			}
			if code, _, errs := to(full); code != exitResources || !strings.Contains(errs, "no space left on device") {
				t.Errorf("a full device: exit %d: %s", code, errs)
			}
			for _, path := range []string{null, full} {
				if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeCharDevice == 0 {
					t.Fatalf("%s became %v", path, info.Mode())
				}
			}
			if code, _, errs := to(dir); code != exitUsage ||
				!strings.Contains(errs, c.flag+" "+dir+" is a directory\n  try "+c.flag) {
				t.Errorf("a directory: exit %d: %s", code, errs)
			}
			if code, out, _ := withStdout(t, append(c.args, c.flag, "-", "--json")...); code != exitUsage ||
				!bytes.Contains(out, []byte("both write to standard output")) {
				t.Errorf("with --json: exit %d: %s", code, out)
			}
		})
	}
}

// A command never replaces a file that it reads.
func TestAnOutputIsNoInput(t *testing.T) {
	w := workshop{t, t.TempDir()}
	for _, dir := range []string{"text", "study"} {
		if err := os.Mkdir(w.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("f", w.path("link")); err != nil {
		t.Fatal(err)
	}
	for file, args := range map[string][]string{
		"f":                {"generate", "r", "--prompts", w.path("f"), "--out", w.path("link")},
		"p.csv":            {"scaling", "fit", w.path("p.csv"), "--out", w.path("p.csv")},
		"study/points.csv": {"scaling", "fit", w.path("study"), "--svg", w.path("study/points.csv")},
		"c.yaml":           {"lr-find", w.path("c.yaml"), "--svg", w.path("c.yaml")},
		"text/d1.md":       {"tokenizer", "train", "--vocab", "300", "--out", w.path("text/d1.md"), w.path("text")},
		"text/d2.md":       {"tokenizer", "sweep", "--svg", w.path("text/d2.md"), w.path("text")},
		"q.bin":            {"data", "classifier", "quantize", w.path("q.bin"), "--out", w.path("q.bin")},
	} {
		if err := os.WriteFile(w.path(file), []byte("keep"), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := anneal(args...); code != exitUsage || !strings.Contains(errs, " is the file that is read") {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
		if text, err := os.ReadFile(w.path(file)); string(text) != "keep" {
			t.Errorf("%v: %s holds %q, %v", args, file, text, err)
		}
	}
}

// Files in an output directory are written like files that a flag names: through links, and never replacing a device.
func TestFilesInDirectoriesAreWrittenThroughLinks(t *testing.T) {
	w := newWorkshop(t)
	full := outputDevice(t, "full", 7)
	if err := os.WriteFile(w.path("p.yaml"), []byte("stages: [normalize]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file string // in dir
		args func(dir string) []string
	}{
		"tokenizer convert": {"tokenizer.json", func(dir string) []string {
			return []string{"tokenizer", "convert", w.path("tok.json"), "--to", "hf", "--out", dir}
		}},
		"data score": {"scores/length.f32",
			func(dir string) []string { return []string{"data", "score", dir, "--by", "length"} }},
		"data curate": {"report.json", func(dir string) []string {
			return []string{"data", "curate", w.path("p.yaml"), w.path("text"), "--out", dir}
		}},
	} {
		run := func(target string) (dir string, code int, errs string) {
			dir = filepath.Join(t.TempDir(), "dir")
			if name == "data score" {
				w.object(exitOK, "data", "build", "--tokenizer", w.path("tok.json"), "--out", dir, w.path("text"))
			}
			w.object(exitOK, c.args(dir)...)
			if err := os.Remove(filepath.Join(dir, c.file)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, filepath.Join(dir, c.file)); err != nil {
				t.Fatal(err)
			}
			code, _, errs = anneal(c.args(dir)...)
			return dir, code, errs
		}
		target := filepath.Join(t.TempDir(), "target")
		dir, code, errs := run(target)
		if code != exitOK {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
		if to, err := os.Readlink(filepath.Join(dir, c.file)); to != target {
			t.Errorf("%s: the link names %q, %v", name, to, err)
		}
		if info, err := os.Stat(target); err != nil || info.Size() == 0 {
			t.Errorf("%s: what the link names was not written: %v", name, err)
		}
		if _, code, errs := run(full); code != exitResources || !strings.Contains(errs, "no space left on device") {
			t.Errorf("%s: a full device: exit %d: %s", name, code, errs)
		}
		if info, err := os.Lstat(full); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			t.Fatalf("%s: the device became %v", name, info.Mode())
		}
	}
}

// withStdout runs a command with a file for standard output, which it may open by its name.
func withStdout(t *testing.T, args ...string) (code int, stdout []byte, stderr string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before := os.Stdout
	os.Stdout = f
	defer func() { os.Stdout = before }()
	var errs bytes.Buffer
	code = execute(args, strings.NewReader(""), f, &errs)
	f.Seek(0, io.SeekStart)
	stdout, err = io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return code, stdout, errs.String()
}

// outputDevice makes a device like /dev/NAME. A user who may not make one cannot replace the system's device either,
// so the test then uses that one.
func outputDevice(t *testing.T, name string, minor uint32) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, minor))); err != nil {
		path = "/dev/" + name
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	f.Close()
	return path
}
