package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"anneal/lab"
	"anneal/run"
	"anneal/train"
)

// The runs of an ablation with the same seed differ only in the keys of their variants. Trained several at a time,
// they have the same bits as one by one. A repeated command trains nothing.
func TestAblationDiffersOnlyInWhatItsVariantsSay(t *testing.T) {
	w := newWorkshop(t)
	args := []string{
		"lab", "ablate", w.path("run.yaml"), "train.steps=6", "--seeds", "2", "--with",
		"train.clip=1e9 optimizer.eps=1.001e-8",
		"--with", "optimizer.lr=1e-3 schedule.warmup=2 steps train.clip=0.5", "--svg", w.path("loss.svg"), "--out",
		w.path("which"),
	}
	variants := w.object(exitOK, args...)["variants"].([]any)
	if len(variants) != 3 {
		t.Fatalf("%d variants, want the configured one and two", len(variants))
	}
	hash := func(variant, seed int) any {
		v := variants[variant].(map[string]any)
		w.keys(v, "name", "change", "interval", "p", "verdict", "arena_bytes", "val_bits_per_byte", "steps")
		run := v["runs"].([]any)[seed].(map[string]any)
		w.keys(run, "run", "seed", "val_bits_per_byte", "change", "train_loss", "tokens_per_second", "diverged")
		return run["weights_hash"]
	}
	seen := map[any]bool{}
	for variant := range 3 {
		for seed := range 2 {
			seen[hash(variant, seed)] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d different weights of 6 different runs", len(seen))
	}
	alone := w.object(exitOK, "train", w.path("run.yaml"), "train.steps=6", "optimizer.lr=1e-3",
		"schedule.warmup=2 steps", "train.clip=0.5", "seed=2", "--out", w.path("alone"))
	if alone["weights_hash"] != hash(2, 1) {
		t.Errorf("trained beside others it has the weights %v, alone %v", hash(2, 1), alone["weights_hash"])
	}
	again := w.object(exitOK, args...)["variants"].([]any)[2].(map[string]any)["runs"].([]any)[1].(map[string]any)
	if again["weights_hash"] != hash(2, 1) || again["tokens_per_second"] != nil {
		t.Errorf("asked again it says %v: want the same weights, and no steps made", again)
	}
	for file, want := range map[string]string{"loss.svg": "optimizer.lr=1e-3", "which/report.html": "schedule.warmup"} {
		if text, err := os.ReadFile(w.path(file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has %d bytes and not %q: %v", file, len(text), want, err)
		}
	}
	if code, _, errs := anneal("lab", "ablate",
		w.path("run.yaml"), "train.steps=7", "--seeds", "2", "--with", "optimizer.lr=2e-2", "--out",
		w.path("which")); code != exitUsage || !strings.Contains(errs, "train.steps: 6 → 7") {
		t.Errorf("other runs in the same directory: exit %d, want %d and what differs\n%s", code, exitUsage, errs)
	}
}

func TestAblationOfEqualCompute(t *testing.T) {
	w := newWorkshop(t)
	fair := w.object(exitOK, "lab", "ablate", w.path("run.yaml"), "train.steps=6", "model.context=64", "--seeds",
		"1", "--with", "model.attention=window:4", "--with", "model.layers=2 train.steps=5", "--with",
		"model.positions=learned", "--equal", "compute", "--context", "4x", "--out", w.path("fair"))["variants"].([]any)
	for i, want := range []struct{ least, most float64 }{{6, 6}, {7, 8}, {5, 5}, {6, 6}} {
		v := fair[i].(map[string]any)
		if n := v["steps"].(float64); n < want.least || n > want.most {
			t.Errorf("%v made %v steps, want %v to %v for the operations of the first run",
				v["name"], n, want.least, want.most)
		}
		run := v["runs"].([]any)[0].(map[string]any)
		if _, has := run["far_bits_per_byte"].(float64); has != (i != 3) {
			t.Errorf("%v has %v bits per byte on rows four times as long; learned positions cannot read them",
				v["name"], run["far_bits_per_byte"])
		}
		if v["interval"] != nil || i > 0 && !strings.Contains(v["verdict"].(string), "one seed") {
			t.Errorf("of one seed it says %v ± %v", v["verdict"], v["interval"])
		}
	}
}

// The next command takes the first seed of the variant with the lowest mean, not the luckiest run.
func TestTheNextStepAfterAnAblationIsTheBestVariant(t *testing.T) {
	variant := func(name string, bits ...float64) (v lab.Ablated) {
		for seed, x := range bits {
			r := lab.Compared{Run: fmt.Sprintf("%s-%d", name, seed+1), Diverged: math.IsNaN(x)}
			r.Result = &run.Result{Evaluation: train.Evaluation{ValBitsPerByte: x}}
			v.Runs = append(v.Runs, r)
		}
		return v
	}
	list := []lab.Ablated{variant("lucky", 3, 1.9), variant("best", 2.1, 2), variant("away", 1, math.NaN())}
	if got, want := nextOfAblation(list), "anneal generate best-1"; got != want {
		t.Errorf("next is %q, want %q", got, want)
	}
}

// The report has the columns of the table and pictures of the curves and intervals. Another ablation in the same
// directory says which runs its report no longer has.
func TestTheReportOfAnAblation(t *testing.T) {
	w := newWorkshop(t)
	args := []string{"lab", "ablate", w.path("run.yaml"), "train.steps=2", "model.context=64", "--seeds", "2", "--with",
		"optimizer.lr=1e-3", "--out", w.path("which")}
	w.object(exitOK, append(args, "--equal", "memory", "--context", "2x")...)
	page, err := os.ReadFile(w.path("which/report.html"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, want := range []string{
		"<th>memory</th>", "<th>at 2x</th>", "<th>micro-batch</th><th>tokens/s</th>", "with 95 % intervals",
		"running mean of 2 seeds", `fill-opacity="0.15"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no %s", want)
		}
	}
	if code, out, errs := anneal(args...); code != exitOK || strings.Contains(errs, "no longer") ||
		!strings.Contains(out, "\nreport: "+w.path("which/report.html")+"\n") {
		t.Errorf("the same variants: exit %d\n%s%s", code, out, errs)
	}
	args[8] = "optimizer.lr=2e-3"
	_, _, errs := anneal(args...)
	if want := "no longer has 2 runs of an earlier ablation, such as " + w.path("which/01-optimizer.lr-1e-3"); !strings.
		Contains(strings.Join(strings.Fields(errs), " "), want) {
		t.Errorf("other variants: no %q in\n%s", want, errs)
	}
}

// Steps for equal time follow from measured speeds. A repeated command keeps the steps, although speeds vary.
func TestAblationOfEqualTimeGoesOn(t *testing.T) {
	w := newWorkshop(t)
	args := []string{
		"lab", "ablate", w.path("run.yaml"), "train.steps=40", "--seeds", "1", "--with", "optimizer.lr=1e-3", "--equal",
		"time", "--out", w.path("timed"),
	}
	steps := func() float64 {
		return w.object(exitOK, args...)["variants"].([]any)[1].(map[string]any)["steps"].(float64)
	}
	first := steps()
	if first < 4 || first > 400 {
		t.Errorf("a variant that costs the same made %v steps, the first 40", first)
	}
	for range 3 {
		if n := steps(); n != first {
			t.Errorf("repeated it has %v steps, first %v", n, first)
		}
	}
}

// A variant chooses the micro-batch that fills the memory of the first variant: one that stores less per row has more
// rows.
func TestAblationOfEqualMemory(t *testing.T) {
	w := newWorkshop(t)
	list := w.object(exitOK, "lab", "ablate", w.path("run.yaml"), "train.steps=2", "train.micro_batch=24",
		"train.batch_tokens=3072", "model.layers=8", "--seeds", "1", "--with", "memory.recompute=every_layer",
		"--with", "optimizer.lr=1e-3", "--with", "optimizer.lr=2e-3 train.micro_batch=2",
		"--equal", "memory", "--out", w.path("memory"))["variants"].([]any)
	for i, most := range []float64{24, 96, 24, 2} {
		n := list[i].(map[string]any)["micro_batch"].(float64)
		if n > most || i != 1 && n != most || i == 1 && n <= 24 {
			t.Errorf("variant %d has micro-batches of %v rows; the first has 24", i, n)
		}
	}
	code, _, errs := anneal("lab", "ablate", w.path("run.yaml"), "train.steps=2", "train.micro_batch=1", "--seeds", "1",
		"--with", "model.layers=8", "--equal", "memory", "--out", w.path("large"))
	if code != exitUsage || !strings.Contains(errs, "one sequence at a time") {
		t.Errorf("a variant that is too large: exit %d, want %d\n%s", code, exitUsage, errs)
	}
}

// Every variant tries the same factors around its own rate, and its runs use the best one.
func TestAblationTunesAllAlike(t *testing.T) {
	w := newWorkshop(t)
	all := w.object(exitOK, "lab", "ablate", w.path("run.yaml"), "train.steps=6", "--seeds", "2", "--with",
		"optimizer.lr=1e-6", "--tune", "lr=3", "--out", w.path("tuned"))
	list, searched := all["variants"].([]any), 0.0
	for i, x := range list {
		v := x.(map[string]any)
		tried := v["tried"].([]any)
		searched += float64(len(tried) - 1)
		best := tried[0].(map[string]any)
		for _, y := range tried {
			if y := y.(map[string]any); y["run"].(map[string]any)["val_bits_per_byte"].(float64) <
				best["run"].(map[string]any)["val_bits_per_byte"].(float64) {
				best = y
			}
		}
		first := v["runs"].([]any)[0].(map[string]any)
		if len(tried) < 3 || len(tried) < 6 && v["at_edge"] == true || best["value"] != v["value"] ||
			first["weights_hash"] != best["run"].(map[string]any)["weights_hash"] {
			t.Errorf("variant %d took %v; the best of %d is %v", i, v["value"], len(tried), best["value"])
		}
	}
	// a variant's best run counts as its first seed, not as search, and each variant trains one more seed
	cost := all["search"].(map[string]any)
	if cost["runs"] != searched || cost["tokens"] != searched*6*128 ||
		math.Abs(cost["share"].(float64)-searched/(searched+4)) > 1e-9 {
		t.Errorf("the search cost %v, not %v runs", cost, searched)
	}
	if v := list[1].(map[string]any); v["value"].(float64) != 1.6e-5 || v["at_edge"] != true {
		t.Errorf("around a rate that is far too small the largest of 3 values and 3 further ones is best: %v, "+
			"at the edge: %v", v["value"], v["at_edge"])
	}
}

func TestAblationRefusesWhatCannotBe(t *testing.T) {
	w := newWorkshop(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--with", " "}, "--with is empty"},
		{[]string{"--with", "optimizer.lr=-1"}, "optimizer.lr=-1"},
		{[]string{"--with", "optimizer.lr=1e-2"}, "are the same run"}, // the value in the config
		{[]string{"--with", "optimizer.lr=1e-3", "--with", "optimizer.lr=0.001"}, "are the same run"},
		{[]string{"--with", "optimizer.lr=1e-2", "--equal", "time"}, "are the same run"},
		{
			[]string{"schedule.warmup=19 steps", "--with", "model.layers=8", "--equal", "compute"},
			"as much compute as the first is",
		},
		{[]string{"--with", "optimizer.lr=1e-3 seed=7"}, "another seed"},
		{[]string{"--with", "optimizer.lr=1e-3", "--seeds", "0"}, "--seeds 0"},
		{[]string{"--with", "optimizer.lr=1e-3", "--tune", "lr=2"}, "--tune lr=2"},
		{[]string{"--with", "optimizer.lr=1e-3", "--tune", "nonsense=3"}, "--tune nonsense=3"},
		{[]string{"--with", "optimizer.lr=1e-3", "--tune", "model.family=3"}, "no number"},
		{[]string{"--with", "optimizer.lr=1e-3", "--context", "0"}, "at --context"},
		{[]string{"--with", "optimizer.lr=1e-3", "--context", "four"}, "at --context"},
		{[]string{"--with", "optimizer.lr=1e-3", "--context", "0.3x"}, "at --context"},
	} {
		args := append([]string{"lab", "ablate", w.path("run.yaml"), "--out", w.path("bad")}, c.args...)
		if code, _, errs := anneal(args...); code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, want %d and %q\n%s", c.args, code, exitUsage, c.want, errs)
		}
	}
	if _, err := os.Stat(w.path("bad")); err == nil {
		t.Error("a run was begun before all were checked")
	}
}
