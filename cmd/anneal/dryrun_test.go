package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A dry run says in a sentence whether the run fits, and needs no data if the config gives the vocabulary.
func TestDryRunSaysWhetherItFits(t *testing.T) {
	w := newWorkshop(t)
	bare := w.path("bare.yaml")
	if err := os.WriteFile(bare, []byte("model: {layers: 2, dim: 64, heads: 2}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		out  []string // parts of standard output
		errs string
	}{
		{[]string{w.path("run.yaml")}, exitOK, []string{"# fits: needs ", " MiB of ", " available\n"}, ""},
		{[]string{w.path("run.yaml"), "model.dim=65536", "model.heads=512", "model.layers=64"}, exitResources,
			[]string{"# does not fit: needs ", " GiB (", " GB), "}, "this run needs"},
		{[]string{bare, "model.vocab=32000"}, exitOK,
			[]string{"# fits", "no data set was given: tokenizer, epochs, packing and order are not checked"}, ""},
		{[]string{bare, "model.vocab=32000", "data.path=" + w.path("later")}, exitOK,
			[]string{"# fits", w.path("later") + " holds no data set: tokenizer"}, ""},
		{[]string{bare}, exitUsage, nil, "such as model.vocab=32000"},
		{[]string{bare, "data.path=" + w.path("later")}, exitData, nil, "such as model.vocab=32000"},
		{[]string{w.path("run.yaml"), "model.vocab=5000"}, exitUsage, nil,
			"model.vocab = 5000, but the tokenizer of " + w.path("data") + " has 292 tokens"},
		{[]string{w.path("run.yaml"), "model.vocab=320"}, exitOK,
			[]string{"model.vocab = 320 pads the 292 tokens"}, ""},
		{[]string{w.path("run.yaml"), "--out", w.path("data")}, exitUsage, nil, "it holds a data set"},
		{[]string{w.path("run.yaml"), "--threads", "1", "--device", "cpu"}, exitOK,
			[]string{"threads: 1 ", "device: cpu "}, ""},
		{[]string{bare, "model.vocab=32000", "--ranks", "4", "parallel.zero=2"}, exitOK,
			[]string{"\n# 4 ranks. What rank ", " 16.00 bytes ", " < this run\n#      3 ",
				"  gradients of a few units, on their way to their owners\n", "\n# fits: a"}, ""},
		{[]string{bare, "model.vocab=32000", "--ranks", "1024", "parallel.tensor=2", "parallel.pipeline=2",
			"parallel.zero=1", "train.batch_tokens=262144", "--memory", "80GB"}, exitOK,
			[]string{"\n# 1,024 ranks = 2 stages × 256 data × 1 context × 2 tensor. What the fullest rank ",
				"  ZeRO 0  this run: 1 ", "\n#       1  512–1023 ", " kept whole\n", " of 80 GB available\n"}, ""},
		{[]string{bare, "model.vocab=32000", "--ranks", "4", "parallel.pipeline=2", "--memory", "100MiB"},
			exitResources, []string{"\n# ZeRO 3 does not fit 100 MiB\n", "\n# pipeline: ", "# does not fit: "},
			"this run needs"},
		{[]string{bare, "model.vocab=32000", "--memory", "1TB"}, exitOK, []string{" of 1000 GB available\n"}, ""},
		{[]string{bare, "model.vocab=32000", "--ranks", "0"}, exitUsage, nil, "--ranks 0: a run has at least one rank"},
		{[]string{bare, "model.vocab=32000", "--ranks", "2", "parallel.zero=4"}, exitUsage, nil, "0, 1, 2 or 3"},
		{[]string{w.path("run.yaml"), "--device", "tpu"}, exitUsage, nil, `device = "tpu" is not known`},
	} {
		code, out, errs := anneal(append([]string{"train", "--dry-run"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.errs) {
			t.Errorf("%v: exit %d, want %d; %q does not hold %q", c.args, code, c.code, errs, c.errs)
		}
		for _, want := range c.out {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", c.args, want, out)
			}
		}
		if strings.Contains(out, " 0 MiB") {
			t.Errorf("%v: 0 MiB in\n%s", c.args, out)
		}
	}
	if v := w.object(exitOK, "train", bare, "model.vocab=32000", "--dry-run"); v["fits"] != true ||
		v["unchecked"] == nil {
		t.Errorf("as JSON: %v", v)
	}
	v := w.object(exitResources, "train", bare, "model.vocab=32000", "--dry-run", "--memory", "1MiB")
	if v["fits"] != false || v["memory"] == nil || v["error"] == nil || v["exit_code"] != float64(exitResources) {
		t.Errorf("a run that does not fit as JSON: %v", v)
	}
	v = w.object(exitOK, "train", bare, "model.vocab=32000", "--dry-run", "--ranks", "4", "parallel.zero=3")
	ranks, _ := v["ranks"].(map[string]any)
	if stages, _ := ranks["stages"].([]any); ranks["count"] != 4. || ranks["zero"] != 3. || ranks["sums"] != 1. ||
		len(stages) != 4 || len(ranks["rank_bytes"].([]any)) != 4 {
		t.Errorf("ranks as JSON: %v", v["ranks"])
	}
	v = w.object(exitOK, "train", bare, "model.vocab=32000", "--dry-run", "parallel.tensor=2", "parallel.pipeline=2")
	ranks, _ = v["ranks"].(map[string]any)
	shares, _ := ranks["mesh"].([]any)
	if len(shares) != 2 || ranks["pipeline_idle_share"] == 0. {
		t.Fatalf("a mesh as JSON: %v", v["ranks"])
	}
	sent, _ := shares[1].(map[string]any)["sent"].(map[string]any)
	if of, _ := sent["tensor_bytes"].(float64); of <= 0 {
		t.Errorf("what a stage sends, as JSON: %v", shares[1])
	}
	if code, _, errs := anneal("train", w.path("run.yaml"), "--memory", "1GB"); code != exitUsage ||
		!strings.Contains(errs, "add --dry-run") {
		t.Errorf("--memory of a run: exit %d, %s", code, errs)
	}
}

// A path of an older config that is relative to the working directory is found, with a remark.
func TestPathsOfAnOlderConfigAreSaid(t *testing.T) {
	w := newWorkshop(t)
	t.Chdir(w.dir)
	text, err := os.ReadFile("run.yaml")
	if err == nil {
		err = os.Mkdir("configs", 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join("configs", "old.yaml"),
			[]byte(strings.ReplaceAll(string(text), w.path("data"), "data")), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	const says = "paths in a config are relative to its file: write ../data"
	for _, args := range [][]string{{"train", "configs/old.yaml", "--dry-run"},
		{"lr-find", "configs/old.yaml", "--steps", "30"}} {
		code, out, errs := anneal(args...)
		if n := strings.Count(out+errs, says); code != exitOK || n != 1 {
			t.Errorf("%v: exit %d, said %d times\n%s%s", args, code, n, out, errs)
		}
	}
	if _, out, errs := anneal("train", "configs/old.yaml", "data.path=data", "--dry-run"); strings.Contains(out+errs,
		says) {
		t.Errorf("a path on the command line is taken for one in the file\n%s%s", out, errs)
	}
}

// A run that does not fit is refused before anything is written; the error lists its parts and a size that would fit.
func TestTrainRefusesWithWhatWouldBeEnough(t *testing.T) {
	w := newWorkshop(t)
	large := []string{"model.dim=16384", "model.heads=128", "model.layers=40"}
	code, _, errs := anneal(append([]string{"train", w.path("run.yaml"), "--out", w.path("large")}, large...)...)
	for _, want := range []string{"this run needs ", "optimizer state ", " × 80 GB are the least"} {
		if code != exitResources || !strings.Contains(errs, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, errs)
		}
	}
	if _, err := os.Stat(w.path("large")); err == nil {
		t.Error("the refused run left a directory")
	}
}

// If the run fits without the optimizer's state, the error names the key that moves the state to a file, and what the
// run then needs.
func TestARefusalNamesOffloading(t *testing.T) {
	w := newWorkshop(t)
	dry := func(code int, layers float64) map[string]any {
		return w.object(code, "train", w.path("run.yaml"), "--dry-run", "model.dim=1024", "model.heads=8",
			"model.ffn=4096", fmt.Sprintf("model.layers=%.0f", layers))
	}
	one := dry(exitOK, 1)
	two := dry(exitOK, 2)
	perLayer := two["parameters"].(float64) - one["parameters"].(float64)
	layers := one["available_bytes"].(float64) / (12.5 * perLayer) // of 16 bytes a parameter, or 8
	args := []string{"train", w.path("run.yaml"), "--out", w.path("large"), "model.dim=1024", "model.heads=8",
		"model.ffn=4096", fmt.Sprintf("model.layers=%.0f", layers)}
	code, _, errs := anneal(args...)
	if code != exitResources || !strings.Contains(errs, "memory.offload=optimizer: with its state in a file") {
		t.Errorf("exit %d:\n%s", code, errs)
	}
	if code, out, errs := anneal(append(args, "memory.offload=optimizer", "--dry-run")...); code != exitOK {
		t.Errorf("with its state in a file: exit %d: %s%s", code, out, errs)
	}
}
