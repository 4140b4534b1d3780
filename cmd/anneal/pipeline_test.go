package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for the command in a process of its own, where signals can reach it.
func TestMain(m *testing.M) {
	switch os.Getenv("ANNEAL_TEST_COMMAND") {
	case "":
	case "crash":
		abortOnCrash()
		go panic("outside of the command")
		select {}
	default:
		main()
	}
	os.Exit(m.Run())
}

// workshop is a directory with text, a tokenizer, a data set and a config.
type workshop struct {
	t   *testing.T
	dir string
}

func (w workshop) path(name string) string { return filepath.Join(w.dir, name) }

// object runs a command with --json, demands the exit code and returns the one object it printed.
func (w workshop) object(code int, args ...string) map[string]any {
	w.t.Helper()
	got, out, errs := anneal(append(args, "--json")...)
	if got != code {
		w.t.Fatalf("anneal %s: exit %d, want %d\n%s", strings.Join(args, " "), got, code, errs)
	}
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&v); err != nil {
		w.t.Fatalf("anneal %s: %v in %q", strings.Join(args, " "), err, out)
	}
	if rest, _ := io.ReadAll(d.Buffered()); strings.TrimSpace(string(rest)) != "" {
		w.t.Fatalf("anneal %s: more than one object on standard output: %q", strings.Join(args, " "), out)
	}
	return v
}

func (w workshop) keys(v map[string]any, keys ...string) {
	w.t.Helper()
	for _, k := range keys {
		if _, ok := v[k]; !ok {
			w.t.Errorf("no %q in %v", k, v)
		}
	}
}

func newWorkshop(t *testing.T) workshop {
	t.Helper()
	w := workshop{t, t.TempDir()}
	if err := os.Mkdir(w.path("text"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 80 {
		var b strings.Builder
		for j := range 40 {
			fmt.Fprintf(&b, "func f%d(x int) int {\n\treturn x + %d // number %d\n}\n\n", i*j%17, j%5, (i+j)%7)
		}
		if err := os.WriteFile(w.path(fmt.Sprintf("text/%02d.go", i)), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config := `
precision: bf16
model: {layers: 1, dim: 32, heads: 2, ffn: 64, context: 32}
data: {path: ` + w.path("data") + `}
train: {steps: 20, batch_tokens: 128, eval_every: 10, eval_tokens: 512}
optimizer: {lr: 1e-2}
checkpoint: {every: 5}
`
	if err := os.WriteFile(w.path("run.yaml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	v := w.object(exitOK, "tokenizer", "train", "--vocab", "300", "--out", w.path("tok.json"), w.path("text"))
	w.keys(v, "vocab_size", "hash", "corpus")
	v = w.object(exitOK, "data", "build", "--tokenizer", w.path("tok.json"), "--out", w.path("data"), "--val", "0.1",
		w.path("text"))
	w.keys(v, "train", "val", "corpus")
	return w
}

// From text to a model that other tools open, by the commands alone; the keys are those that scripts rely on.
func TestPipeline(t *testing.T) {
	w := newWorkshop(t)
	run, exported, imported := w.path("run"), w.path("hf"), w.path("imported")

	v := w.object(exitOK, "tokenizer", "encode", w.path("tok.json"), w.path("text/00.go"))
	w.keys(v, "ids", "tokens", "bytes")
	ids := strings.Trim(fmt.Sprint(v["ids"]), "[]")
	if err := os.WriteFile(w.path("ids"), []byte(ids), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(w.path("text/00.go"))
	if err != nil {
		t.Fatal(err)
	}
	if _, out, _ := anneal("tokenizer", "decode", w.path("tok.json"), w.path("ids")); out != string(text) {
		t.Errorf("decode(encode(text)) has %d bytes, the text %d", len(out), len(text))
	}
	empty := w.object(exitOK, "tokenizer", "encode", w.path("tok.json"), "-") // standard input, which is empty
	if ids, ok := empty["ids"].([]any); !ok || len(ids) != 0 {
		t.Errorf("an empty text has the ids %v, want []", empty["ids"])
	}
	// --special takes no value here, but it does in tokenizer train.
	again := w.object(exitOK, "tokenizer", "encode", "--special", w.path("tok.json"), w.path("text/00.go"))
	if fmt.Sprint(again["ids"]) != fmt.Sprint(v["ids"]) {
		t.Errorf("encode --special gives %v", again["ids"])
	}
	w.keys(w.object(exitOK, "tokenizer", "eval", w.path("tok.json"), w.path("text")), "bytes_per_token", "fertility")
	by := w.object(exitOK, "tokenizer", "eval", w.path("tok.json"), w.path("text"), "--by", "ext")["groups"].([]any)
	if g := by[0].(map[string]any); len(by) != 1 || g["name"] != ".go" || g["parity"] != 1.0 {
		t.Errorf("groups by ext: %v, want .go alone with parity 1", by)
	}
	w.object(exitUsage, "tokenizer", "eval", w.path("tok.json"), w.path("text"), "--by", "mood")
	learned := w.object(exitOK, "tokenizer", "train", "--vocab", "300", "--memory", "64MiB", "--out",
		w.path("again.json"), w.path("text"))["hash"]
	w.object(exitUsage, "tokenizer", "train", "--vocab", "300", "--memory", "1MiB", "--out", w.path("again.json"),
		w.path("text"))
	for _, to := range []string{"hf", "gpt2", "tiktoken"} {
		v := w.object(exitOK, "tokenizer", "convert", w.path("tok.json"), "--to", to, "--out", w.path("as-"+to))
		file := filepath.Dir(v["files"].([]any)[0].(string))
		back := []string{"tokenizer", "convert", file, "--to", "hf", "--out", w.path("back")}
		switch to {
		case "gpt2":
			back = append(back, "--pattern", "llama3")
		case "tiktoken":
			back = append(back, "--pattern", "llama3", "--special", "<|endoftext|>=291")
		}
		// A tiktoken rank file also implies merges that training did not make.
		if v = w.object(exitOK, back...); v["hash"] != learned && to != "tiktoken" {
			t.Errorf("by way of %s the hash is %v, with --memory it was %v", to, v["hash"], learned)
		}
	}
	sweep := w.object(exitOK, "tokenizer", "sweep", w.path("text"), "--vocab", "270,280", "--val", w.path("text"),
		"--svg", w.path("vocabulary.svg"))
	if points := sweep["points"].([]any); len(points) != 2 ||
		points[1].(map[string]any)["embedding_params"] != 280.0*768 {
		t.Errorf("a sweep over two sizes gives %v", points)
	}
	w.keys(w.object(exitOK, "data", "verify", w.path("data")), "ok", "fingerprint")
	v = w.object(exitOK, "data", "inspect", w.path("data"), "--context", "32", "--svg", w.path("lengths.svg"))
	w.keys(v, "train", "val", "bytes_per_token", "lengths", "context", "packings", "utilisation")
	w.keys(w.object(exitOK, "train", w.path("run.yaml"), "--dry-run"), "parameters", "memory", "fits")
	ordered := []string{"train", w.path("run.yaml"), "data.order=first compression over 30%, last length over 20%"}
	w.object(exitData, append(ordered, "--dry-run")...)
	w.keys(w.object(exitOK, "data", "score", w.path("data"), "--by", "compression"), "name",
		"path", "quantiles", "bins", "lowest", "highest", "mb_per_second")
	w.object(exitOK, "data", "score", w.path("data"), "--by", "length")
	w.keys(w.object(exitOK, append(ordered, "--dry-run")...), "order")
	w.keys(w.object(exitOK, append(ordered, "--out", w.path("ordered"))...), "weights_hash")
	w.object(exitOK, "data", "score", w.path("data"), "--by", "loss", "--model", w.path("ordered"))
	w.object(exitUsage, "data", "score", w.path("data"), "--by", "loss")
	w.object(exitUsage, "data", "score", w.path("data"), "--by", "beauty")
	w.object(exitData, "data", "score", w.path("data"), "--by", "file:"+w.path("nothing.jsonl"))

	v = w.object(exitOK, "train", w.path("run.yaml"), "precision=fp32", "--out", run)
	w.keys(v, "step", "tokens", "train_loss", "val_bits_per_byte", "weights_hash")
	hash := w.object(exitOK, "ckpt", "hash", run)
	w.keys(hash, "weights_hash", "optimizer_hash", "step")
	if v["step"] != 20.0 || v["tokens"] != 2560.0 || v["weights_hash"] != hash["weights_hash"] {
		t.Errorf("train said %v, ckpt hash %v", v, hash)
	}
	if again := w.object(exitOK, "resume", run); again["weights_hash"] != v["weights_hash"] {
		t.Errorf("resuming a run that is done changed its weights from %v to %v",
			v["weights_hash"], again["weights_hash"])
	}
	if _, out, errs := anneal("resume", run); strings.Contains(out+errs, "NaN") ||
		strings.Contains(out+errs, "tok/s") || !strings.Contains(out, "no step this time") {
		t.Errorf("resuming a run that is done says\n%s%s", out, errs)
	}
	w.keys(w.object(exitOK, "ckpt", "verify", run), "ok")
	w.keys(w.object(exitOK, "ckpt", "ls", run), "checkpoints")
	w.keys(w.object(exitOK, "eval", run, "--data", w.path("data")), "loss", "bits_per_byte")

	w.mixes(run)

	// The run is in fp32, and so is the model that was exported in F32 and imported again, so both generate the same
	// text.
	said := w.object(exitOK, "generate", run, "--prompt", "func", "--max-tokens", "8", "--temperature", "0")
	w.keys(w.object(exitOK, "export", run, "--to", "hf", exported), "max_logit_difference")
	w.object(exitOK, "import", exported, "--out", imported)
	w.keys(w.object(exitOK, "export", run, "--to", "gguf", w.path("m.gguf"), "--type", "q8_0"), "max_difference")
	w.object(exitUsage, "export", run, "--to", "hf", w.path("q8"), "--type", "q8_0")
	if made, cache := said["tokens"].(float64), said["cache_bytes"].(float64); made > 1 &&
		said["tokens_per_second"].(float64) <= 0 || cache <= 0 || cache > said["memory_bytes"].(float64) {
		t.Errorf("generating reports %v", said)
	}
	if back := w.object(exitOK, "generate", imported, "--prompt", "func", "--max-tokens", "8", "--temperature",
		"0"); back["text"] != said["text"] {
		t.Errorf("the model says %q, and %q after export and import", said["text"], back["text"])
	}

	w.object(exitUsage, "train", w.path("run.yaml"), "--out", run)
	w.object(exitData, "tokenizer", "train", "--vocab", "300", "--out", w.path("no.json"), run) // a run is no text
	w.object(exitUsage, "resume", w.path("text"))
	w.object(exitUsage, "train", w.path("run.yaml"), "model.vocab=100", "--dry-run")
	w.object(exitUsage, "train", w.path("run.yaml"), "--out", w.path("run.yaml"))
	w.object(exitUsage, "tokenizer", "encode", w.path("tok.json"), w.path("text"))
	w.object(exitUsage, "data", "build", "--tokenizer", w.path("tok.json"), "--out", w.path("data"), w.path("text"))
	w.object(exitUsage, "train", w.path("run.yaml"), "--out", w.path("other")) // the path is a data set
	w.object(exitData, "train", w.path("run.yaml"), "data.path="+w.path("text"), "--out", w.path("fresh"))
	w.object(exitData, "tokenizer", "encode", w.path("text/00.go"))
	w.object(exitResources, "train", w.path("run.yaml"), "model.dim=65536", "model.heads=512", "model.ffn=262144",
		"model.layers=64", "--out", w.path("fresh"))
	w.object(exitOK, "tokenizer", "train", "--vocab", "290", "--out", w.path("data/tokenizer.json"), w.path("text"))
	w.object(exitData, "data", "verify", w.path("data")) // its tokens are from another tokenizer
	shard, err := filepath.Glob(filepath.Join(run, "checkpoints", "*20", "model.safetensors"))
	if err != nil || len(shard) != 1 {
		t.Fatalf("%v, %v", shard, err)
	}
	if err := os.Truncate(shard[0], 100); err != nil {
		t.Fatal(err)
	}
	w.object(exitCheckpoint, "ckpt", "verify", run)
}

// The demo, on a small stand-in for the source of Go: text to samples, with the keys that scripts rely on.
func TestDemo(t *testing.T) {
	w := newWorkshop(t)
	w.goSource()
	v := w.object(exitOK, "demo", "--steps", "1", "--sample-tokens", "4", "--out", w.path("demo"), "--seed", "7")
	w.keys(v, "steps", "tokens", "parameters", "tokens_per_second", "train_loss", "val_bits_per_byte", "weights_hash")
	if v["steps"] != 1.0 || v["val_bits_per_byte"] == nil {
		t.Errorf("steps %v, val_bits_per_byte %v", v["steps"], v["val_bits_per_byte"])
	}
	t.Setenv("ANNEAL_CPU", "bogus")
	w.object(exitUsage, "demo", "--steps", "1", "--out", w.path("new"))
	if _, err := os.Stat(w.path("new")); err == nil {
		t.Error("the demo began its work although its kernels cannot be had")
	}
	w.object(exitUsage, "tokenizer", "train", "--vocab", "300", "--out", w.path("tok.json"), w.path("go"))
}

func TestBenchmarksReportWhatScriptsReadFromThem(t *testing.T) {
	w := newWorkshop(t)
	v := w.object(exitOK, "bench", "step", "--shape", "demo", "--seconds", "0.01", "--batch", "1")
	w.keys(v, "tokens_per_second", "step_ms_median", "peak_rss_bytes", "gflops", "peak_gflops", "fraction_of_peak",
		"tier", "threads")
	v = w.object(exitOK, "bench", "cores", "--shape", "demo", "--seconds", "0.01", "--batch", "1", "--context", "32",
		"--threads", "4")
	w.keys(v, "tokens_per_step", "cases")
	v = w.object(exitOK, "bench", "memory", "--shape", "demo", "--seconds", "0.01", "--batch", "1", "--context", "32",
		"--strategy", "every_layer")
	w.keys(v, "shape", "precision", "rounds", "cases")
	w.keys(v["cases"].([]any)[1].(map[string]any), "strategy",
		"activation_bytes", "planned_bytes", "step_ms", "extra_time")
	v = w.object(exitOK, "bench", "attention", "full", "window:16", "--lengths", "32,64", "--heads", "1", "--head-dim",
		"8", "--seconds", "0.001", "--svg", w.path("a.svg"))
	w.keys(v, "tier", "threads", "dtype", "head_dim", "peak_gflops", "cases", "growth")
	w.keys(v["cases"].([]any)[3].(map[string]any), "pattern", "length", "heads", "seconds", "peak_bytes",
		"scratch_bytes", "density", "gflops", "fraction_of_peak", "over_dense")
	v = w.object(exitOK, "bench", "tokenizer", "--vocab", "300", w.path("text"))
	w.keys(v, "train_mb_per_second", "encode_cold_mb_per_second", "encode_warm_mb_per_second", "bytes_per_token")
}

// SIGTERM saves the run and exits with 75; resumed, it ends with the bits of an uninterrupted run.
func TestSignalSavesAndResumeEndsWithTheSameBits(t *testing.T) {
	w := newWorkshop(t)
	steps := "train.steps=200"
	whole := w.object(exitOK, "train", w.path("run.yaml"), steps, "--out", w.path("whole"))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := w.path("stopped")
	cmd := exec.Command(exe, "train", w.path("run.yaml"), steps, "--out", run)
	cmd.Env = append(os.Environ(), "ANNEAL_TEST_COMMAND=1")
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The run is under way when its first step is in the log.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if s, err := os.Stat(filepath.Join(run, "metrics.jsonl")); err == nil && s.Size() > 0 {
			break
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatalf("no step within 20 s\n%s", errs.String())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitStopped ||
		!strings.Contains(errs.String(), "to continue: `anneal resume "+run+"`") {
		t.Fatalf("exit %d, want %d\n%s", code, exitStopped, errs.String())
	}
	rest := w.object(exitOK, "resume", run)
	if rest["weights_hash"] != whole["weights_hash"] || rest["optimizer_hash"] != whole["optimizer_hash"] {
		t.Errorf("stopped and resumed: weights %v, optimizer %v; without a stop: %v, %v",
			rest["weights_hash"], rest["optimizer_hash"], whole["weights_hash"], whole["optimizer_hash"])
	}
}

// mixes trains on two data sets of the workshop.
func (w workshop) mixes(run string) {
	w.t.Helper()
	w.object(exitOK, "data", "build", "--tokenizer", w.path("tok.json"), "--out", w.path("other"), "--val", "0.2",
		w.path("text"))
	v := w.object(exitOK, "data", "mix", "--method", "unimax", "--epochs", "2", "--tokens", "1K", "--context", "32",
		"a="+w.path("data"), "b="+w.path("other"))
	w.keys(v, "sources", "weights", "config")
	mix := []string{"data.mix=a=" + w.path("data") + ",b=" + w.path("other"),
		"data.weights=unimax:2,b=1 from 50% to 75%"}
	dry := w.object(exitOK, append([]string{"train", w.path("run.yaml"), "--dry-run"}, mix...)...)
	plan := dry["mix"].(map[string]any)["sources"].([]any)
	v = w.object(exitOK, append([]string{"train", w.path("run.yaml"), "--out", w.path("mixed")}, mix...)...)
	w.keys(v, "source_tokens", "source_validation", "val_bits_per_byte")
	for _, p := range plan {
		p := p.(map[string]any)
		read := v["source_tokens"].(map[string]any)[p["name"].(string)].(float64)
		if d := p["drawn_tokens"].(float64) - read; d > 64 || d < -64 { // a row in each phase
			w.t.Errorf("%v of %v tokens read, %v were planned", read, p["name"], p["drawn_tokens"])
		}
	}
	w.keys(w.object(exitOK, "eval", run, "--data", "a="+w.path("data"), "--data", "b="+w.path("other")), "sources",
		"bits_per_byte")
	w.object(exitUsage, "data", "mix", "--method", "unimax", "a="+w.path("data"))
	w.object(exitUsage, "data", "mix", "--tokens", "31", "--context", "32", "a="+w.path("data"))
	w.object(exitUsage, "data", "mix", "--epochs", "3", "a="+w.path("data"))
	w.object(exitUsage, "data", "mix", "--weights", "c=1", "a="+w.path("data"))
}
