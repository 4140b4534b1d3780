package main

import (
	"os"
	"strings"
	"testing"
)

// Training from the weights of a run, of its export, or of an import of that export ends with the same weights. Every
// step is a command, and names the weights it used.
func TestTrainingStartsFromWeights(t *testing.T) {
	w := newWorkshop(t)
	run, exported, imported := w.path("run"), w.path("hf"), w.path("imported")
	first := w.object(exitOK, "train", w.path("run.yaml"), "--out", run)
	w.object(exitOK, "export", run, "--to", "hf", exported)
	v := w.object(exitOK, "import", exported, "--out", imported)
	if v["weights_hash"] != first["weights_hash"] || v["dtype"] != "F32" || v["precision"] != "fp32" ||
		v["run"] != imported {
		t.Errorf("import says %v, the run had the weights %v", v, first["weights_hash"])
	}
	if v := w.object(exitOK, "eval", imported, "--data", w.path("data")); v["precision"] != "fp32" {
		t.Errorf("eval says %v", v)
	}
	if v := w.object(exitOK, "generate", run, "--max-tokens", "1"); v["precision"] != "bf16" {
		t.Errorf("generate says %v", v)
	}
	short := w.path("short.yaml")
	text := "data: {path: " + w.path("data") +
		"}\ntrain: {steps: 4, batch_tokens: 128, eval_every: 0, eval_tokens: 512}\noptimizer: {lr: 1e-3}\n"
	if err := os.WriteFile(short, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	hashes := map[any]bool{}
	for name, from := range map[string]string{"run": run, "hf": exported, "import": imported} {
		out := w.path("from-" + name)
		w.keys(w.object(exitOK, "train", short, "--init-from", from, "--only", "model", "--dry-run"), "parameters")
		v := w.object(exitOK, "train", short, "--init-from", from, "--out", out)
		if hashes[v["weights_hash"]] = true; v["init_from"] != from ||
			v["init_weights_hash"] != first["weights_hash"] || v["step"] != 4.0 {
			t.Errorf("from the %s: %v, want the weights %v", name, v, first["weights_hash"])
		}
		if again := w.object(exitOK, "resume", out); again["weights_hash"] != v["weights_hash"] ||
			again["init_from"] != from {
			t.Errorf("resumed: %v", again)
		}
	}
	if len(hashes) != 1 {
		t.Errorf("from the same weights runs end with %v", hashes)
	}
	if v := w.object(exitOK, "train", short, "--init-from", run, "--init-step", "15", "--out",
		w.path("earlier")); v["init_step"] != 15.0 || hashes[v["weights_hash"]] {
		t.Errorf("from an earlier checkpoint: %v", v)
	}
	points := w.object(exitOK, "lr-find", short, "init.from="+run, "--steps", "30", "--high", "1")["points"].([]any)
	if loss := points[0].(map[string]any)["loss"].(float64); loss > first["train_loss"].(float64)+0.5 {
		t.Errorf("lr-find begins with the loss %v, the weights end with %v", loss, first["train_loss"])
	}

	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"resume", imported}, exitUsage, "`anneal train CONFIG --init-from " + imported + " --out RUN`"},
		{[]string{"train", w.path("run.yaml"), "model.layers=2", "--init-from", run, "--dry-run"}, exitUsage,
			"model.layers = 2, but the weights of " + run + " have 1"},
		{[]string{"train", short, "--init-from", w.path("text"), "--out", w.path("x")}, exitUsage, "neither a run"},
		{[]string{"train", short, "--init-from", run, "--init-step", "7", "--out", w.path("x")}, exitCheckpoint,
			"no checkpoint of step 7"},
		{[]string{"train", short, "--init-step", "7", "--out", w.path("x")}, exitUsage, "without init.from"},
		{[]string{"train", short, "--init-from", run, "--only", "optimizer", "--out", w.path("x")},
			exitUsage, "--only"},
		{[]string{"train", short, "--init-from", run, "--out", imported}, exitUsage, "already holds a run"},
	} {
		if code, out, errs := anneal(c.args...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("anneal %s: exit %d, want %d\n%s%s\nwant it to hold %q",
				strings.Join(c.args, " "), code, c.code, out, errs, c.want)
		}
	}
	_, out, _ := anneal("train", short, "--init-from", run, "--dry-run")
	for _, line := range []string{"# from the weights of " + run, "# initial weights: " + run + ", step 20"} {
		if !strings.Contains(out, line) {
			t.Errorf("the dry run does not say %q:\n%s", line, out)
		}
	}
	w.object(exitOK, "tokenizer", "train", "--vocab", "280", "--out", w.path("cut.json"), w.path("text"))
	w.object(exitOK, "data", "build", "--tokenizer", w.path("cut.json"), "--out", w.path("less"), w.path("text"))
	if _, _, errs := anneal("train", short, "data.path="+w.path("less"), "--init-from", run, "--out",
		w.path("cut")); !strings.Contains(errs, " to 280 rows: 280 tokens keep their rows") {
		t.Errorf("a vocabulary that is cut is not told:\n%s", errs)
	}
}
