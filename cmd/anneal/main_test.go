package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"

	"anneal/config"
	"anneal/curate"
)

// anneal runs a command line and returns its exit code and what it printed.
func anneal(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = execute(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// leaves calls f with the words of every command.
func leaves(n *kong.Node, words []string, f func(words []string)) {
	commands := 0
	for _, c := range n.Children {
		if c.Type == kong.CommandNode {
			commands++
			leaves(c, append(append([]string(nil), words...), c.Name), f)
		}
	}
	if commands == 0 {
		f(words)
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	n := 0
	leaves(kong.Must(&cli{}).Model.Node, nil, func(words []string) {
		n++
		code, out, errs := anneal(append(words, "--help")...)
		command := "anneal " + strings.Join(words, " ")
		if code != exitOK || errs != "" {
			t.Errorf("%s --help: exit %d, stderr %q", command, code, errs)
		}
		if !strings.Contains(out, "Example:\n\n    "+command) {
			t.Errorf("%s --help holds no example of itself:\n%s", command, out)
		}
	})
	if n < 20 {
		t.Errorf("found %d commands", n)
	}
}

// The help of a flag with a placeholder states the default, which the placeholder would hide, unless its text already
// does.
func TestHelpSaysDefaults(t *testing.T) {
	for command, want := range map[string]string{
		"bench cores": "--threads=N,...        Numbers of cores to simulate. Default: 2,4,8",
		"plan":        "Stage of ZeRO, 0 to 3. Default: 1.\n",
		"bench gemm":  "Default: one, and all.\n",
	} {
		if _, out, _ := anneal(append(strings.Fields(command), "--help")...); !strings.Contains(out, want) {
			t.Errorf("anneal %s --help lacks %q:\n%s", command, want, out)
		}
	}
}

// Every command and every exit code is in docs/commands.md.
func TestDocumentationListsEveryCommand(t *testing.T) {
	doc, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	leaves(kong.Must(&cli{}).Model.Node, nil, func(words []string) {
		if command := "anneal " + strings.Join(words, " "); !bytes.Contains(doc, []byte(command)) {
			t.Errorf("docs/commands.md does not mention %q", command)
		}
	})
	for _, code := range []int{
		exitOK, exitInternal, exitUsage, exitData, exitDiverged, exitCheckpoint, exitResources, exitStalled,
		exitCorrupt, exitLocked, exitStopped, exitHangup, exitQuit, exitPipe,
	} {
		if !bytes.Contains(doc, fmt.Appendf(nil, "\n| %d", code)) {
			t.Errorf("docs/commands.md does not list exit code %d", code)
		}
	}
}

// The help of a command has examples of it; the help of a group has examples of its commands.
func TestEveryHelpHasAnExample(t *testing.T) {
	leaves(kong.Must(&cli{}).Model.Node, nil, func(words []string) {
		for n := range words {
			command := words[:n+1]
			_, out, _ := anneal(append(slices.Clone(command), "--help")...)
			if !strings.Contains(out, "Example:\n\n    anneal "+command[0]) {
				t.Errorf("anneal %s --help has no example", strings.Join(command, " "))
			}
		}
	})
}

// The usual ways to ask an unknown tool for help and its version work.
func TestHelpAndVersionByTheirUsualNames(t *testing.T) {
	for _, c := range [][2]string{{"help", "--help"}, {"help train", "train --help"}, {"--version", "version"}} {
		code, got, _ := anneal(strings.Fields(c[0])...)
		_, want, _ := anneal(strings.Fields(c[1])...)
		if code != exitOK || got != want {
			t.Errorf("anneal %s: exit %d\n%s\nwant what anneal %s says:\n%s", c[0], code, got, c[1], want)
		}
	}
}

// The example configs are valid, apart from the data they name.
func TestExamplesLoad(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, f := range files {
		if _, err := config.Load(f, nil); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// The example pipelines are valid.
func TestExamplePipelinesParse(t *testing.T) {
	files, err := filepath.Glob("../../examples/curate/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d pipelines, %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil {
			_, err = curate.Parse(text, f)
		}
		if err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// A mistake is reported once, on stderr, with a remedy, and has its exit code.
func TestMistakesExitWithTheirCode(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := write("bad.yaml", "data:\n  path: x\nmodel:\n  dmi: 4\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"trian"}, exitUsage, "did you mean `anneal train`?"},
		{[]string{"train"}, exitUsage, "try `anneal train --help`"},
		{[]string{"generate", "run", "--prompts", "q.txt"}, exitUsage, "--prompts needs a file for the texts"},
		{[]string{"generate", "run", "--out", "q.txt"}, exitUsage, "--out is for many prompts"},
		{[]string{"improve", "c.yaml", "--prompts", "q", "--out", "a", "--verify", " "}, exitUsage,
			"--verify is empty"},
		{[]string{"improve", "c.yaml", "--prompts", "q", "--out", "a", "--verify", "x", "--rounds", "0"}, exitUsage,
			"no rounds"},
		{[]string{"improve", "c.yaml", "--prompts", "q", "--out", "a", "--verify", "x", "--samples", "4"}, exitUsage,
			"4 samples at temperature 0"},
		{[]string{"improve", "c.yaml", "--prompts", "q", "--out", "a", "--verify", "x", "--verify-timeout", "0"},
			exitUsage, "leaves no time"},
		{[]string{"lab", "study", "selfimprove", "--rounds", "0", "--out", "a"}, exitUsage, "0 rounds"},
		{[]string{"generate", "run", "--prompts", "q", "--out", "a", "--prompt", "b"}, exitUsage, "leave out --prompt"},
		{[]string{"train", bad, "--out", dir}, exitUsage,
			"error: unknown key model.dmi\n  at " + bad + ":4:3\n  try model.dim\n"},
		{[]string{"train", filepath.Join(dir, "none.yaml"), "--out", dir}, exitUsage, "cannot read the config"},
		{[]string{"explain", "modle.dim"}, exitUsage, "try model.dim"},
		{[]string{"generate", dir, "--temperature=-1"}, exitUsage,
			"--temperature -1 is not a finite number of at least 0"},
		{[]string{"generate", dir, "--temperature=nan"}, exitUsage, "--temperature NaN is not"},
		{[]string{"generate", dir, "--top-p=2"}, exitUsage, "--top-p 2 is not a probability"},
		{[]string{"generate", dir, "--top-k=-3"}, exitUsage, "-3 is negative"},
		{[]string{"generate", dir, "--max-tokens=-1"}, exitUsage, "--max-tokens"},
		{[]string{"eval", dir, "--data", dir, "--threads=-2"}, exitUsage, "--threads"},
		{[]string{"bench", "gemm", "--threads=1,0"}, exitUsage, "--threads 0"},
		{[]string{"bench", "cores", "--threads=8,0"}, exitUsage, "--threads 0"},
		{[]string{"bench", "memory", "--strategy", "WRONG"}, exitUsage, `--strategy: unknown strategy "WRONG"`},
		{[]string{"bench", "memory", "--strategy", "every:9"}, exitUsage, "every:N with N below 6"},
		{[]string{"bench", "attention", "windw:3"}, exitUsage, "windw"},
		{[]string{"bench", "attention", "full", "--lengths=0"}, exitUsage, "--lengths 0"},
		{[]string{"bench", "attention", "full", "--lengths="}, exitUsage, "--lengths is empty"},
		{[]string{"bench", "attention", "bigbird:block=1", "--lengths=1048576"}, exitUsage, "too many separate blocks"},
		{[]string{"bench", "attention", "longnet:64/2", "--lengths=256"}, exitUsage, "try"},
		{[]string{"demo", "--minutes=nan"}, exitUsage, "--minutes"},
		{[]string{"data", "build", "--tokenizer", bad, "--out", dir, "--val", "1.001", dir}, exitUsage, "--val 1.001"},
		{[]string{"data", "build", "--tokenizer", bad, "--out", dir, dir}, exitData,
			"try a tokenizer.json made by `anneal tokenizer train`"},
		{[]string{"tokenizer", "encode", filepath.Join(dir, "none.json")}, exitData, "try a tokenizer.json"},
		{[]string{"tokenizer", "encode", bad, "--pattern", "("}, exitUsage, "already defines a pattern"},
		{[]string{"tokenizer", "train", "--vocab", "100", "--out", filepath.Join(dir, "t.json"), bad},
			exitUsage, "try 8192"},
		{[]string{"tokenizer", "train", "--vocab", "300", "--pattern", "(", "--out", filepath.Join(dir, "t.json"), bad},
			exitUsage, "try gpt2"},
		{[]string{"tokenizer", "train", "--vocab", "300", "--out", dir, dir}, exitUsage,
			"try --out " + filepath.Join(dir, "tokenizer.json")},
		{[]string{"tokenizer", "train", "--vocab", "300", "--out", filepath.Join(bad, "t.json"), dir}, exitUsage,
			"not a directory"},
		{[]string{"ckpt", "hash", dir}, exitUsage, "is not a run"},
		{[]string{"ckpt", "verify", dir}, exitUsage, "is not a run"},
		{[]string{"ckpt", "ls", dir}, exitUsage, "is not a run"},
		{[]string{"ls", filepath.Join(dir, "none")}, exitUsage, "none does not exist"},
	} {
		code, out, errs := anneal(c.args...)
		if code != c.code || !strings.Contains(errs, c.want) || out != "" || strings.Count(errs, "error:") != 1 {
			t.Errorf("anneal %s: exit %d, want %d\nstdout %q\nstderr %q\nwant it to hold %q",
				strings.Join(c.args, " "), code, c.code, out, errs, c.want)
		}
	}
}

// fullDisk refuses every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Results that cannot be written are an error, reported once, for any command.
func TestResultsThatCannotBeWrittenAreAnError(t *testing.T) {
	for _, args := range [][]string{
		{"explain"}, {"version"}, {"version", "--json"}, {"explain", "--help"}, {"ckpt", "hash", "nowhere", "--json"},
	} {
		var errs bytes.Buffer
		want := exitResources
		if args[0] == "ckpt" {
			want = exitUsage // the first of its errors
		}
		code := execute(args, strings.NewReader(""), fullDisk{}, &errs)
		if code != want || !strings.Contains(errs.String(), "cannot write the results: no space left") {
			t.Errorf("anneal %s into a full disk: exit %d, want %d\n%s",
				strings.Join(args, " "), code, want, errs.String())
		}
		if n := strings.Count(errs.String(), "cannot write"); n != 1 {
			t.Errorf("anneal %s says %d times that it cannot write:\n%s", strings.Join(args, " "), n, errs.String())
		}
	}
}

// With --json, standard output is exactly one object, in success and in failure.
func TestJSONIsOneObject(t *testing.T) {
	for _, args := range [][]string{
		{"version", "--json"}, {"--json", "explain"}, {"explain", "model.dim", "--json"},
		{"ckpt", "hash", "nowhere", "--json"}, {"trian", "--json"}, {"explain", "model", "--json"},
	} {
		_, out, _ := anneal(args...)
		d := json.NewDecoder(strings.NewReader(out))
		var v map[string]any
		if err := d.Decode(&v); err != nil || d.More() {
			t.Errorf("anneal %s: %v, more %v: %q", strings.Join(args, " "), err, d.More(), out)
		}
	}
}

// The table of precisions has every policy that a config can name, and says which the CPU only emulates.
func TestExplainPrecisionShowsEveryPolicy(t *testing.T) {
	v := workshop{t, ""}.object(exitOK, "explain", "precision")
	names, _ := v["values"].([]any)
	rows, _ := v["policies"].([]any)
	if len(names) < 3 || len(rows) != len(names) {
		t.Fatalf("%d rows for %d policies", len(rows), len(names))
	}
	for i, row := range rows {
		r := row.(map[string]any)
		_, emulated := r["emulated"]
		if want := map[any]bool{"fp16": true, "fp8": true, "tf32": true}[r["name"]]; r["name"] != names[i] ||
			r["weights"] == "" || emulated != want {
			t.Errorf("row %d of %v: %v", i, names[i], r)
		}
	}
}
