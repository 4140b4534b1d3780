package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A dataset that should be replaced is still there, byte for byte, after a build that failed.
func TestAFailedBuildLeavesWhatItWasToReplace(t *testing.T) {
	d := build(t, []string{"one", "two", "three"}, BuildOptions{TokenizerFile: strings.NewReader("old")})
	before := files(t, d.Dir)
	opt := BuildOptions{Dir: d.Dir, Replace: true, Tokenizer: byteTokenizer, NewEncoder: byteEncoder,
		TokenizerFile: strings.NewReader("new"), PromptEnd: "absent", ShardTokens: 2}
	if _, err := Build(t.Context(), opt, sequence([]string{"four", "five"})); err == nil {
		t.Fatal("no document has the end of a prompt, and the build succeeded")
	}
	checkFiles(t, d.Dir, before)
	in := filepath.Join(d.Dir, manifestName+temporary) // the manifest cannot be written
	if err := os.Mkdir(in, 0o777); err != nil {
		t.Fatal(err)
	}
	opt.PromptEnd = ""
	if _, err := Build(t.Context(), opt, sequence([]string{"four", "five"})); err == nil {
		t.Fatal("the manifest was written")
	}
	os.Remove(in)
	checkFiles(t, d.Dir, before)
}

// The same holds wherever a build is killed: the next one brings the dataset back before it looks for one.
func TestAKilledBuildLeavesWhatItWasToReplace(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	move := func(from, to, name string) {
		check(os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o777))
		check(os.Rename(filepath.Join(from, name), filepath.Join(to, name)))
	}
	for name, kill := range map[string]func(dir string){
		"moving the old files away": func(dir string) {
			move(dir, filepath.Join(dir, moving), manifestName)
			move(dir, filepath.Join(dir, moving), "train/00000.tokens")
		},
		"writing the new files": func(dir string) {
			check(setAside(dir))
			for _, name := range []string{"train/00000.tokens", "train/00007.tokens", "val/00000.tokens.tmp",
				tokenizerName} {
				check(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
				check(os.WriteFile(filepath.Join(dir, name), []byte("new"), 0o666))
			}
		},
		"moving the old files back": func(dir string) {
			check(setAside(dir))
			check(os.Rename(filepath.Join(dir, replaced), filepath.Join(dir, moving)))
			move(filepath.Join(dir, moving), dir, "train/00001.tokens")
		},
	} {
		d := build(t, []string{"one", "two", "three", "four"},
			BuildOptions{TokenizerFile: strings.NewReader("old"), ShardTokens: 5})
		before := files(t, d.Dir)
		kill(d.Dir)
		if _, err := os.Stat(filepath.Join(d.Dir, tokenizerName)); err != nil {
			t.Errorf("killed %s: the tokenizer, with which the same command begins, is gone", name)
		}
		if _, err := Open(d.Dir); err == nil || !strings.Contains(err.Error(), "being replaced") {
			t.Errorf("killed %s: opening it gives %v", name, err)
		}
		opt := BuildOptions{Dir: d.Dir, Tokenizer: byteTokenizer, NewEncoder: byteEncoder}
		if _, err := Build(t.Context(), opt, sequence([]string{"five"})); !errors.Is(err, ErrExists) {
			t.Errorf("killed %s: %v", name, err)
		}
		checkFiles(t, d.Dir, before)
	}
}

// A build that fails leaves what was there: nothing, or a tokenizer of the user.
func TestAFailedBuildLeavesWhatWasThere(t *testing.T) {
	for _, before := range []map[string]string{nil, {tokenizerName: "my own"}} {
		dir := t.TempDir()
		for name, text := range before {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(dir, manifestName+temporary), 0o777); err != nil {
			t.Fatal(err)
		}
		opt := BuildOptions{Dir: dir, Tokenizer: byteTokenizer, NewEncoder: byteEncoder,
			TokenizerFile: strings.NewReader("my own"), TokenizerConfig: []byte("{}")}
		if _, err := Build(t.Context(), opt, sequence([]string{"one", "two"})); err == nil {
			t.Fatal("the manifest was written")
		}
		checkFiles(t, dir, before)
	}
}

func checkFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := files(t, dir)
	for name, content := range want {
		if got[name] != content {
			t.Errorf("%s holds %.20q, was %.20q", name, got[name], content)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s was not there", name)
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, hidden := range []string{replaced, moving} {
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == hidden }) {
			t.Errorf("%s is left", hidden)
		}
	}
}
