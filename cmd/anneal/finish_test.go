package main

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"anneal/comm"
	"anneal/plan"
	"anneal/run"
	"anneal/train"
)

// A command that trains ends with what it wrote and where, how long it took, and next commands that exist. The order
// of the cases matters, because some use the output of others.
func TestCommandsThatTrainSayWhatTheyWroteAndWhatIsNext(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell to read the next commands")
	}
	w := newWorkshop(t)
	w.goSource()
	run, config := w.path("run"), w.path("run.yaml")
	mix := "data.mix=a=" + w.path("data") + ",b=" + w.path("data")
	for _, c := range []struct {
		out  string // "" if nothing is written
		args []string
	}{
		{w.path("sampled"), []string{"data", "sample", "--vocab", "300", "--out", w.path("sampled")}},
		{w.path("demo/run"), []string{"demo", "--steps", "1", "--sample-tokens", "4", "--out", w.path("demo")}},
		{run, []string{"train", config, "--out", run}},
		{w.path("branch"), []string{"branch", run, "--at", "10", "train.steps=12", "--out", w.path("branch")}},
		{w.path("mean"), []string{"ckpt", "average", run, "--last", "2", "--out", w.path("mean")}},
		{run, []string{"rewind", run, "--to", "10"}},
		{run, []string{"resume", run}},
		{w.path("hf"), []string{"export", run, w.path("hf")}},
		{w.path("imported"), []string{"import", w.path("hf"), "--out", w.path("imported")}},
		{w.path("which"), []string{"lab", "ablate", config, "train.steps=2", "--seeds", "1", "--with",
			"optimizer.name=lion", "--out",
			w.path("which")}},
		{"", []string{"lr-find", config, "--steps", "30"}},
		{"", []string{"mup", "check", config, "model.layers=2", "--widths", "32,64,128", "--seeds", "1", "--lr",
			"0.003", "--random"}},
		{"", []string{"mup", "sweep", config, "train.steps=2", "--widths", "32,64", "--rates", "0.001,0.004"}},
		{w.path("doremi/mix.json"), []string{"mix", "doremi", config, "train.steps=2", mix, "--out", w.path("doremi")}},
	} {
		code, out, errs := anneal(c.args...)
		name := strings.Join(c.args[:2], " ")
		if code != exitOK {
			t.Fatalf("anneal %s: exit %d\n%s", strings.Join(c.args, " "), code, errs)
		}
		end, next, found := strings.Cut(out, "\nnext: ")
		end = end[strings.LastIndexByte(end, '\n')+1:]
		if !found || c.out != "" && !strings.HasPrefix(end, "wrote "+c.out+": ") || !strings.Contains(end, ", in ") ||
			!strings.HasSuffix(end, " s") {
			t.Errorf("anneal %s ends with %q and %q; want what it wrote, where, in which time, and what is next",
				name, end, next)
		}
		for _, set := range []string{"model.mup=true", "model.dim=64", "model.mup_base_dim=32"} {
			if name == "mup sweep" && !strings.Contains(next, set) {
				t.Errorf("anneal mup sweep ends with %q, without %s of the wider model", next, set)
			}
		}
		for line := range strings.Lines(next) {
			words, err := exec.Command("sh", "-c", `printf '%s\n' `+line).Output()
			if err != nil {
				t.Fatal(err)
			}
			list := strings.Split(strings.TrimSpace(string(words)), "\n")
			if list[0] == "python3" {
				continue
			}
			parser := kong.Must(&cli{}, kong.Exit(func(int) {}),
				kong.Writers(new(strings.Builder), new(strings.Builder)))
			if _, err := parser.Parse(flagsLast(parser.Model, list[1:])); list[0] != "anneal" ||
				err != nil && list[len(list)-1] != "--help" {
				t.Errorf("after anneal %s, next is %q: %v", name, line, err)
			}
		}
	}
}

// A validation loss that is older than the last step is printed with its step.
func TestTheLossSaysOfWhichStepItIs(t *testing.T) {
	var out, errs strings.Builder
	s := &session{stdout: &results{w: &out}, stderr: &errs, status: newStatus(&errs), world: comm.Alone{}}
	r := &run.Result{
		Step: 192, EvalStep: 100, TrainLoss: 3.4, Interrupted: true,
		Evaluation:      train.Evaluation{ValLoss: 3.5, ValBitsPerByte: 2.25, ValBitsPerByteEMA: math.NaN()},
		TokensPerSecond: math.NaN(), NoiseScale: math.NaN(),
	}
	err := s.finishRun(r, finished{dir: "runs/a", elapsed: 65 * time.Second})
	if want := "validation loss   3.5000 nats/token, 2.2500 bits/byte, at step 100\n"; !strings.Contains(out.String(),
		want) {
		t.Errorf("no line %q in\n%s", want, out.String())
	}
	if exitCode(err) != exitStopped || !strings.Contains(err.Error(), "at step 192 after 1m05s") ||
		strings.Contains(out.String(), "wrote ") {
		t.Errorf("a run that was stopped ends with %v after\n%s", err, out.String())
	}
}

// A run that got worse says so at its end, for people and in JSON.
func TestARunThatGotWorseSaysSo(t *testing.T) {
	var out, errs strings.Builder
	s := &session{stdout: &results{w: &out}, stderr: &errs, status: newStatus(&errs), world: comm.Alone{}}
	r := &run.Result{
		TokensPerSecond: math.NaN(), NoiseScale: math.NaN(),
		Better: &run.Better{BitsPerByte: 2.3, Step: 172, Above: 0.3, Kept: 172, KeptBitsPerByte: 2.3},
	}
	f := finished{dir: "runs/a"}
	if err := s.finishRun(r, f); err != nil {
		t.Fatal(err)
	}
	const want = "lowest            2.3000 bits/byte, at step 172; the end is 30 % above it. generate,"
	if !strings.Contains(out.String(), want) {
		t.Errorf("no line %q in\n%s", want, out.String())
	}
	if finishedJSON(r, f)["better"] != r.Better {
		t.Error("--json does not have it")
	}
}

// The peak of several ranks is followed by the parts of rank 0, if there are any.
func TestThePeakOfRanksSaysWhoseThePartsAre(t *testing.T) {
	for peak, want := range map[int64]string{
		5 << 20: "peak memory       9.0 MiB (planned 8.0 MiB) for 2 ranks; of rank 0:\n  activations     5.0 MiB\n",
		5 << 10: "peak memory       9.0 MiB (planned 8.0 MiB) for 2 ranks\n",
	} {
		var out, errs strings.Builder
		s := &session{stdout: &results{w: &out}, stderr: &errs, status: newStatus(&errs), world: comm.Alone{}}
		r := &run.Result{
			TokensPerSecond: math.NaN(), NoiseScale: math.NaN(), PeakRSS: 9 << 20,
			Arenas: []run.ArenaUse{{Name: "activations", Peak: peak}},
		}
		f := finished{plan: &plan.Foresight{Bytes: 8 << 20, Ranks: &plan.Ranks{Count: 2}}}
		if err := s.finishRun(r, f); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v, no %q in\n%s", err, want, out.String())
		}
	}
}

// Token rates have commas; small rates have a decimal.
func TestRatesOfTokensAreReadable(t *testing.T) {
	for rate, want := range map[float64]string{7.25: "7.2", 99.96: "100", 931.24: "931", 14130.4: "14,130"} {
		if got := perSecond(rate); got != want {
			t.Errorf("%v: %q, want %q", rate, got, want)
		}
	}
}

// goSource makes the workshop's text the source of a Go standard library.
func (w workshop) goSource() {
	w.t.Helper()
	dir := w.path("go/src/fmt")
	if err := os.CopyFS(dir, os.DirFS(w.path("text"))); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "print.go"), []byte("package fmt\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.t.Setenv("GOROOT", w.path("go"))
}

// A second demo finishes or shows the results of the first; it changes and deletes nothing. Other files are left
// alone.
func TestDemoKeepsWhatIsThere(t *testing.T) {
	w := newWorkshop(t)
	w.goSource()
	demo := []string{"demo", "--steps", "2", "--sample-tokens", "4", "--out", w.path("demo")}
	first := w.object(exitOK, demo...)
	second := w.object(exitOK, demo...)
	if first["weights_hash"] != second["weights_hash"] || second["steps"] != 2.0 {
		t.Errorf("the second demo ends with %v, the first with %v", second, first)
	}
	if err := os.RemoveAll(w.path("demo/run")); err != nil { // the state after a kill between data and training
		t.Fatal(err)
	}
	before, err := os.Stat(w.path("demo/data/dataset.json"))
	if err != nil {
		t.Fatal(err)
	}
	if third := w.object(exitOK, demo...); third["weights_hash"] != first["weights_hash"] {
		t.Errorf("from the data set that was there come the weights %v, want %v",
			third["weights_hash"], first["weights_hash"])
	}
	if after, err := os.Stat(w.path("demo/data/dataset.json")); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the data set was made anew: %v", err)
	}
	v := w.object(exitUsage, "demo", "--steps", "2", "--out", w.path("text"))
	if message, _ := v["error"].(string); !strings.Contains(message, "is not empty") {
		t.Errorf("in a directory with other files the demo says %q", message)
	}
	w.object(exitUsage, "data", "sample", "--vocab", "300", "--out", w.path("demo/data"))
	w.keys(w.object(exitOK, "data", "sample", "--vocab", "300", "--replace", "--out", w.path("demo/data")), "out",
		"train", "val", "vocab_size", "seconds")
}

// Commands that train, and doctor, report once that portable kernels are slow.
func TestPortableKernelsAreSaidToBeSlow(t *testing.T) {
	w := newWorkshop(t)
	t.Setenv("ANNEAL_CPU", "generic")
	for i, args := range [][]string{
		{"train", w.path("run.yaml"), "train.steps=1", "--out", w.path("slow")},
		{"resume", w.path("slow")},
		{"lab", "ablate", w.path("run.yaml"), "train.steps=1", "--seeds", "1", "--with", "optimizer.name=lion", "--out",
			w.path("which")},
		{"doctor"},
	} {
		code, out, errs := anneal(args...)
		if n := strings.Count(out+errs, "portable kernels"); code != exitOK || n != 1 {
			t.Errorf("command %d, %s: exit %d, says %d times that the kernels are portable\n%s%s",
				i, args[0], code, n, out, errs)
		}
	}
}

// A stopped run has the exit code that says it can be resumed, even if its results could not be written, with and
// without --json.
func TestAStoppedRunSaysSoWithoutItsResults(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var errs strings.Builder
		s := &session{stdout: &results{err: errStalled}, stderr: &errs, status: newStatus(&errs), json: asJSON}
		err := s.finishRun(&run.Result{Step: 3, Interrupted: true}, finished{dir: "runs/a"})
		if exitCode(err) != exitStopped {
			t.Errorf("json %v: exit code %d: %v", asJSON, exitCode(err), err)
		}
	}
}
