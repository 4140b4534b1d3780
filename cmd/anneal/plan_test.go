package main

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"anneal/bench"
	"anneal/config"
	"anneal/plan/cluster"
)

// The picture of a mesh has every part of every stage's memory; the picture of a search has a point for each of the
// best meshes.
func TestPlansAreDrawn(t *testing.T) {
	dir := t.TempDir()
	memory, front := filepath.Join(dir, "memory.svg"), filepath.Join(dir, "front.svg")
	draw := func(want int, file, args string) string {
		t.Helper()
		if code, _, errs := anneal(append(strings.Fields(args), "--svg", file)...); code != want {
			t.Fatalf("anneal %s: exit %d, %s", args, code, errs)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text := draw(exitResources, memory, "plan --recipe llama2-70b --on 4x8xh100-80gb --mesh tp=4,pp=4,vpp=2 --batch 16")
	for _, want := range []string{"stage 0", "stage 3", "activations", "79.4 GiB", "76.0 GiB of a device"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture of memory has no %q", want)
		}
	}
	if got := strings.Count(text, memoryParts[3].colour); got != 5 {
		t.Errorf("the picture has %d times the colour of activations, want 4 stages and the legend", got)
	}
	text = draw(exitOK, front, "plan --recipe llama2-7b --on 8x8xh100-80gb --search")
	for _, want := range []string{"the best meshes", "device hours", "% of memory free"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture of the front has no %q", want)
		}
	}
}

func TestPicturesOfPlansNeedACluster(t *testing.T) {
	code, _, errs := anneal("plan", "x.yaml", "--svg", filepath.Join(t.TempDir(), "x.svg"))
	if code != exitUsage || !strings.Contains(errs, "--svg and --timeline plan a cluster") {
		t.Errorf("exit %d, %s", code, errs)
	}
}

// All faults are reported at once, with suggested names.
func TestBadPlansAreRefusedAtOnce(t *testing.T) {
	for _, c := range []struct {
		args string
		says []string
	}{
		{"--recipe llama2-70x --on 16x8xh100-80g --mesh dpp=3,tp=x,pp=2,pp=4 --precision bf61 --price abc --batch=-4",
			[]string{"did you mean llama2-70b?", "did you mean h100-80gb?", "did you mean dp?", `"tp=x"`, "pp twice",
				"did you mean bf16?", "--price abc", "--batch is -4"}},
		{"--recipe llama2-70b --on 16x8xh100-80gb --mesh tp=8,pp=4 --timeline step.png",
			[]string{"step.png must end in .svg, for a picture, or .json"}},
		{"--recipe llama2-70b --on 16x8xh100-80gb --mesh dp=3,tp=5,pp=81 --zero 7 --tokens 0 --within 3h",
			[]string{"1215 ranks", "tp=5 does not divide 64 heads", "zero=7", "--tokens is 0", "needs --search"}},
		{"--recipe llama2-70b --on 16x8xh100-80gb --search --mesh tp=6,cp=7 --zero 4 --recompute ful " +
			"--context=-1 --batch 0", []string{"tp=6 does not divide 64 heads", "cp=7 does not divide", "zero=4",
			"did you mean full?", "--context is -1", "--batch is 0"}},
		{"--recipe llama2-70b --on 8xh100-80gx --mesh tp=6,pp=96 --micro 0",
			[]string{"tp=6 does not divide 64 heads", "pp=96 is more than the 80 layers", "micro=0", "did you mean"}},
		{"--recipe llama2-70b --on 8xh100-80gb --mesh tp=4194304,pp=4194304,cp=4194304", []string{"8 devices"}},
		{"--recipe llama2-70b --on 16x8xh100-80gb --svg step.svg --timeline step.svg",
			[]string{"--svg and --timeline both write step.svg"}},
		{"--recipe llama2-7b --on 2xh100 --mesh pp=2 --batch 1073741824 --timeline step.json",
			[]string{"is more than a timeline of 5,000,000"}},
		{"../../examples/tiny.yaml model.vocab=300 --precision fp8", []string{"--precision", "plan a cluster"}},
		{"--recipe llama2-70b --on 16x8xh100-80gb --mesh dp=x --zero 9 --micro 0 --batch 0 --within xx",
			[]string{`"dp=x"`, "zero=9", "micro=0", "--batch is 0", `--within: "xx" is not a duration`}},
		{"--recipe llama2-7b --on 8xh100-80gb --search --within 0", []string{`--within: "0" is no time`}},
		{"--recipe llama2-70b --on 2x8xh100-80gb --search --mesh dp=3", []string{"no mesh is possible"}},
		{"--recipe llama2-7b --on 8xh100-80gb --search --within 30d", []string{"no mesh finishes within 30.0 days"}},
		{"--recipe llama2-7b --on 8xh100-80gb --search --within 90s", []string{"no mesh finishes within 1m30s"}},
		{"--recipe llama2-7b --on 8xh100-80gb --price 20/node-hour", []string{"--price 20/node-hour"}},
		{"--recipe llama2-7b --on 8xh100-80gb --price 60/day", []string{"--price 60/day"}},
		{"--recipe standard-130m parallel.zero=3 optimizer.name=sgd --on 8xh100-80gb",
			[]string{"parallel.zero=3 does not count", "--mesh and --zero", "optimizer.name=sgd", "AdamW"}},
		{"--recipe standard-130m memory.offload=optimizer optimizer.moments=bf16 model.lora_rank=8 --on 8xh100-80gb",
			[]string{"memory.offload=optimizer does not count", "optimizer.moments=bf16", "model.lora_rank=8"}},
	} {
		code, _, errs := anneal(append([]string{"plan"}, strings.Fields(c.args)...)...)
		if code != exitUsage {
			t.Errorf("anneal plan %s: exit %d", c.args, code)
		}
		for _, want := range c.says {
			if !strings.Contains(errs, want) {
				t.Errorf("anneal plan %s does not say %q: %s", c.args, want, errs)
			}
		}
	}
}

// A bad hardware file is refused with all its faults and those of the flags, each with its place.
func TestFaultsOfAHardwareFileAreReportedWithThoseOfFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	text := "nodes: 2\ndevices_per_nod: 8\npeak_tflops: {bf16: 0}\nmemory_gb: 80\nmemory_gb_per_second: -3\n" +
		"network:\n  - {gb_per_second: 25}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := anneal("plan", "--recipe", "llama2-70x", "--on", file, "--price", "x")
	if code != exitUsage || strings.Count(errs, "error: ") != 7 {
		t.Errorf("exit %d, %d errors", code, strings.Count(errs, "error: "))
	}
	for _, want := range []string{
		"did you mean llama2-70b?", "--price x", "devices_per_node is missing", "did you mean devices_per_node?",
		"network[0].latency_us is missing",
		file + ":3\n", file + ":5\n",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("the error does not say %q:\n%s", want, errs)
		}
	}
}

// The keys of --json are those that docs/commands.md lists, with --search and without.
func TestPlansHaveTheKeysThatAreDocumented(t *testing.T) {
	const plain = "fits ranks step_seconds phases bubble_fraction exposed_communication_seconds tokens_per_second " +
		"mfu hfu days gpu_hours cost mesh rejected"
	const unfit = plain + " reason error exit_code"
	for args, want := range map[string]string{
		"--recipe llama2-70b --on 16x8xh100-80gb --mesh tp=8,pp=8":                        plain,
		"--recipe llama2-70b --on 8xh100-80gb --price 2":                                  unfit,
		"--recipe llama2-7b --on 8xa100-80gb --precision fp8":                             plain + " remarks",
		"--recipe llama2-7b --on 8x8xh100-80gb --search --mesh tp=2 --price 2.5/gpu-hour": plain + " front",
	} {
		code, out, errs := anneal(append([]string{"plan", "--json"}, strings.Fields(args)...)...)
		var got map[string]json.RawMessage
		wantCode := exitOK
		if want == unfit {
			wantCode = exitResources
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != wantCode {
			t.Fatalf("anneal plan %s: exit %d, want %d, %v, %s", args, code, wantCode, err, errs)
		}
		keys := strings.Fields(want)
		slices.Sort(keys)
		if diff := cmp.Diff(keys, slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("anneal plan %s --json: %s", args, diff)
		}
		var p plannedRun
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err)
		}
		if len(p.Ranks) != p.Mesh.Pipeline || p.Ranks[0].Memory.Optimizer <= 0 || p.Step.Phases.Forward <= 0 ||
			(p.Cost != nil) != strings.Contains(args, "--price") || p.Fits == (p.Reason != "") || p.Rejected == nil {
			t.Errorf("anneal plan %s --json: %s", args, out)
		}
		if strings.Contains(args, "--search") && (len(p.Front) == 0 || len(p.Rejected) < 5 || p.Mesh.Tensor != 2) {
			t.Errorf("anneal plan %s --json: %d meshes on the front, %d rejected, %s", args, len(p.Front),
				len(p.Rejected), p.Mesh)
		}
	}
}

// A plan that does not fit ends as `anneal train` does, on a cluster, in a search and on this machine, and --json says
// why.
func TestPlansThatDoNotFitExitAlike(t *testing.T) {
	for args, says := range map[string]string{
		"--recipe llama3-8b --on 1xh100-80gb":                               "does not fit: a rank of stage 0 needs",
		"--recipe llama2-70b --on 8xh100-80gb --search":                     "16 bytes for each of 69.0B parameters",
		"--recipe llama2-7b --on 8xh100-80gb --search --mesh dp=8 --zero 0": "no mesh fits",
		"--recipe llama2-7b":                                                "this run needs",
	} {
		code, _, errs := anneal(append([]string{"plan"}, strings.Fields(args)...)...)
		if code != exitResources || !strings.Contains(errs, says) || strings.Count(errs, "error: ") != 1 {
			t.Errorf("anneal plan %s: exit %d, want %d and %q\n%s", args, code, exitResources, says, errs)
		}
		code, out, _ := anneal(append([]string{"plan", "--json"}, strings.Fields(args)...)...)
		var p struct {
			Fits   *bool
			Reason string
			Error  string
			Code   int `json:"exit_code"`
		}
		if err := json.Unmarshal([]byte(out), &p); err != nil || code != exitResources || p.Fits == nil || *p.Fits ||
			p.Reason == "" || !strings.Contains(p.Error, says) || p.Code != exitResources {
			t.Errorf("anneal plan --json %s: exit %d, %v\n%.500s", args, code, err, out)
		}
	}
}

// A search that the command line leaves no mesh has the keys of one in which nothing fits, with its own exit code.
func TestSearchesWithoutAMeshHaveTheirKeys(t *testing.T) {
	for args, fits := range map[string]bool{
		"--on 8xh100-80gb --mesh tp=8,pp=2": false, "--on 8xh100-80gb --within 1d": true,
	} {
		code, out, errs := anneal(append(strings.Fields("plan --recipe llama2-7b --search --json"),
			strings.Fields(args)...)...)
		var got struct {
			Fits     *bool
			Reason   string
			Rejected []cluster.Rejected
			Error    string
			Code     int `json:"exit_code"`
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitUsage || got.Code != code ||
			got.Fits == nil || *got.Fits != fits || got.Reason == "" || got.Reason != got.Error || got.Rejected == nil {
			t.Errorf("%s: exit %d, %v, %s%s", args, code, err, out, errs)
		}
	}
}

// Hours and cost are rounded, with decimals if they are few.
func TestHoursAndCostAreRounded(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0.00", 0.001: "under 0.01", 0.006: "0.01", 3.238: "3.24", 99.994: "99.99", 99.996: "100", 100.5: "101",
		413577.6: "413,578", 2e20: "2.00e+20",
	} {
		if got := hundredths(x); got != want {
			t.Errorf("%v is written %s, want %s", x, got, want)
		}
	}
	if got := tokenAmount(999.7e9); got != "1T" {
		t.Errorf("999.7B tokens are written %s", got)
	}
	_, out, _ := anneal(strings.Fields("plan --recipe llama2-7b --on 8xh100-80gb --tokens 5M --price 2.5 --batch 8 " +
		"--context 1")...)
	if !strings.Contains(out, "8 sequences of 1 token a step") {
		t.Errorf("%s", out)
	}
}

// A plan remarks on a precision that the accelerator lacks; its peak is that of the precision in which products are
// timed.
func TestPlansSayInWhichPrecisionProductsAreTimed(t *testing.T) {
	for args, want := range map[string][2]string{
		"--on 8xa100-80gb --precision fp8": {"312 TFLOP/s in bf16", "a100-80gb has no matrix products in fp8: their"},
		"--on 8xh100-80gb --precision fp4": {"989 TFLOP/s in bf16", "h100-80gb has no matrix products in fp4: their"},
		"--on 8xh100-80gb --precision fp8": {"1979 TFLOP/s in fp8", ""},
	} {
		code, out, errs := anneal(append([]string{"plan", "--recipe", "llama2-7b"}, strings.Fields(args)...)...)
		if code != exitOK || !strings.Contains(out, want[0]) || !strings.Contains(errs, want[1]) ||
			want[1] == "" && errs != "" {
			t.Errorf("anneal plan %s: exit %d, want %q\n%s%s", args, code, want, out, errs)
		}
	}
}

// A price on the command line replaces the price in the file, even if it is 0.
func TestAPriceReplacesThatOfTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	text := "nodes: 1\ndevices_per_node: 8\npeak_tflops: {bf16: 300}\nmemory_gb: 96\nmemory_gb_per_second: 2000\n" +
		"price_per_device_hour: 2.5\nnetwork:\n  - {gb_per_second: 25, latency_us: 10}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for price, ratio := range map[string]float64{"": 2.5, "4": 4, "$4/gpu-hour": 4, "4/hour": 4, "0": 0} {
		code, out, errs := anneal("plan", "--json", "--recipe", "llama2-7b", "--on", file, "--price="+price)
		var p plannedRun
		if err := json.Unmarshal([]byte(out), &p); err != nil || code != exitOK {
			t.Fatalf("--price=%s: exit %d, %v, %s", price, code, err, errs)
		}
		cost := 0.0
		if p.Cost != nil {
			cost = *p.Cost
		}
		if math.Abs(cost-ratio*p.Hours) > 1e-6*p.Hours || (p.Cost != nil) != (ratio > 0) {
			t.Errorf("--price=%s: %v device hours cost %v, want %v an hour", price, p.Hours, cost, ratio)
		}
	}
}

// A recipe that exists both as a shape and as a config has the same plan. As a shape, GPT-3 has a padded vocabulary.
func TestShapesAndConfigsOfARecipeArePlannedAlike(t *testing.T) {
	for _, r := range cluster.Recipes {
		name := r.Shape.Name
		if !slices.Contains(config.Recipes(), name) {
			continue
		}
		plan := func(args ...string) (p plannedRun) {
			t.Helper()
			args = append(strings.Fields("plan --json --on 128x8xh100-80gb --mesh tp=8,pp=8 --recipe"), args...)
			code, out, errs := anneal(args...)
			want := exitOK
			if json.Unmarshal([]byte(out), &p) == nil && !p.Fits {
				want = exitResources
			}
			if p.Step == nil || code != want {
				t.Fatalf("anneal %s: exit %d, want %d, %s", strings.Join(args, " "), code, want, errs)
			}
			return p
		}
		shape, conf := plan(name), plan(strings.ToUpper(name), "model.dropout=0")
		for _, x := range [][2]float64{
			{shape.Seconds, conf.Seconds}, {shape.Tokens, conf.Tokens}, {shape.Days, conf.Days}, {shape.MFU, conf.MFU},
		} {
			if math.Abs(x[0]/x[1]-1) > 0.02 {
				t.Errorf("%s: %v as a shape, %v as a config", name, shape.Step, conf.Step)
			}
		}
	}
}

// --context keeps the sequences of a step, of a shape and of a config.
func TestContextKeepsTheSequencesOfAStep(t *testing.T) {
	for _, args := range []string{"", " model.dropout=0", " train.batch_tokens=4194304"} {
		args = "plan --on 16x8xh100-80gb --mesh tp=8,pp=4 --context 8192 --recipe llama2-70b" + args
		code, out, errs := anneal(strings.Fields(args)...)
		for _, want := range []string{"1,024 sequences of 8,192 tokens", "2T tokens"} {
			if code != exitOK || !strings.Contains(out, want) {
				t.Errorf("anneal %s: exit %d, no %q: %s%s", args, code, want, out, errs)
			}
		}
	}
}

// A plan of a cluster names the values of a file that it does not read, but not those that it takes anyway.
func TestPlansOfAClusterNameWhatDoesNotCount(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	text := "precision: fp8\nmodel: {vocab: 1000}\ntrain: {micro_batch: 4}\n" +
		"parallel: {zero: 3, ranks: 2, tensor: 1}\nmemory: {recompute: every_layer, offload: optimizer}\n" +
		"optimizer: {name: adamw, lr: 1e-3}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := anneal("plan", file, "--on", "8xh100-80gb")
	for _, want := range []string{
		"precision = fp8 does not count in a plan of a cluster, which takes --precision", "train.micro_batch = 4",
		"parallel.zero = 3", "parallel.ranks = 2", "memory.recompute = every_layer", "memory.offload = optimizer",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("the remarks lack %q", want)
		}
	}
	if n := strings.Count(errs, "does not count"); code != exitOK || n != 6 {
		t.Errorf("exit %d, %d remarks, want 6: %s", code, n, errs)
	}
	code, _, errs = anneal("plan", file, "--on", "8xh100-80gb", "--micro", "4", "--zero", "3", "--precision", "fp8",
		"--recompute", "full", "memory.offload=none")
	if n := strings.Count(errs, "does not count"); code != exitOK || n != 1 || !strings.Contains(errs, "ranks = 2") {
		t.Errorf("exit %d, %d remarks on keys that flags and usual values replace, want that on ranks: %s", code,
			n, errs)
	}
}

// A missing data set is a data error, on this machine and on a cluster.
func TestPlansWithoutTheirDataExitAlike(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("data: {path: nowhere}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, on := range []string{"this", "8xh100-80gb"} {
		code, _, errs := anneal("plan", file, "--on", on)
		if code != exitData || !strings.Contains(errs, "no data set") {
			t.Errorf("--on %s: exit %d, %s", on, code, errs)
		}
	}
}

// A search explains why other meshes are not the best, and draws the best ones; a timeline is also drawn as text.
func TestSearchesAreExplained(t *testing.T) {
	file := filepath.Join(t.TempDir(), "step.svg")
	code, out, errs := anneal("plan", "--recipe", "llama2-70b", "--on", "16x8xh100-80gb", "--search", "--zero", "1",
		"--timeline", file)
	if code != exitOK {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, want := range []string{
		"meshes were considered", "fits: ", "every other mesh is slower", "llama2-70b: the best meshes",
		"training (days)",
		"the fastest with one axis changed", "% time, mostly", "other meshes: how many", "stage 0  ", "F forward",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the search does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "zero=2") || strings.Contains(out, "zero=3") {
		t.Errorf("the search leaves ZeRO-1:\n%s", out)
	}
}

// total sums the bytes of a listing of memory in JSON.
func total(memory []any) (bytes float64) {
	for _, x := range memory {
		bytes += x.(map[string]any)["bytes"].(float64)
	}
	return bytes
}

// A config is planned for this machine, with the keys of a plan and of a dry run, and for a cluster. The command line
// may override a recipe.
func TestConfigsArePlanned(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	text := "model: {vocab: 1000, layers: 4, dim: 256, heads: 4, context: 512, attention: \"window:64\"}\n" +
		"train: {steps: 100, batch_tokens: 8192}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	plan := func(args ...string) (p map[string]any) {
		t.Helper()
		code, out, errs := anneal(append([]string{"plan", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &p); err != nil || code != exitOK {
			t.Fatalf("anneal plan %s: exit %d, %v\n%s", strings.Join(args, " "), code, err, errs)
		}
		return p
	}
	for _, on := range [][]string{nil, {"--on", "this"}, {"--on", "8xh100-80gb", "--mesh", "tp=2,pp=2"}} {
		p := plan(append([]string{file}, on...)...)
		for _, key := range strings.Fields("fits ranks step_seconds phases bubble_fraction " +
			"exposed_communication_seconds tokens_per_second mfu hfu days gpu_hours cost mesh rejected") {
			if _, found := p[key]; !found {
				t.Errorf("%v: --json lacks %s", on, key)
			}
		}
		ranks := p["ranks"].([]any)
		if len(ranks[0].(map[string]any)["memory"].(map[string]any)) < 5 || p["fits"] != true {
			t.Errorf("%v: %v", on, p)
		}
	}
	here := plan(file, "parallel.ranks=4", "parallel.pipeline=2", "parallel.schedule=interleaved:2",
		"train.micro_batch=1")
	want := plan(file, "--on", "4xh100-80gb", "--mesh", "dp=2,pp=2,vpp=2", "--zero", "0")
	if diff := cmp.Diff(want["mesh"], here["mesh"]); diff != "" {
		t.Errorf("the mesh of this machine is not that of a cluster: %s", diff)
	}
	stages, most := here["ranks"].([]any), 0.0
	for i, x := range stages {
		r := x.(map[string]any)
		if most = max(most, r["memory_bytes"].(float64)); r["stage"] != float64(i) || r["ranks"] != 2.0 {
			t.Errorf("stage %d: %v", i, r)
		}
	}
	if all := here["memory"].([]any); len(stages) != 2 || most != total(all) {
		t.Errorf("%d stages need at most %v bytes, want 2 and those of %v", len(stages), most, all)
	}
	whole := plan(file, "model.attention=full", "--on", "8xh100-80gb")
	seconds := func(p map[string]any) float64 { return p["step_seconds"].(float64) }
	if window := plan(file, "--on", "8xh100-80gb"); seconds(window) >= seconds(whole) {
		t.Errorf("a window takes %v s, without one %v", seconds(window), seconds(whole))
	}
	family := []string{file, "model.family=anneal", "model.context=8192", "train.batch_tokens=65536", "--on",
		"8xh100-80gb"}
	whole = plan(append(family, "model.attention=full")...) // with parts that a cluster's plan leaves out
	if window := plan(family...); seconds(window) >= 0.9*seconds(whole) {
		t.Errorf("family anneal: a window takes %v s, without one %v", seconds(window), seconds(whole))
	}
	days := func(tokens string) float64 {
		return plan(file, "--on", "8xh100-80gb", "--tokens", tokens)["days"].(float64)
	}
	if a, b := days("1.5M"), days("1500000"); a != b {
		t.Errorf("1.5M tokens take %v days, 1500000 take %v", a, b)
	}
	half := plan("--recipe", "llama2-70b", "model.layers=40", "--on", "16x8xh100-80gb", "--mesh", "tp=8")
	full := plan("--recipe", "llama2-70b", "--on", "16x8xh100-80gb", "--mesh", "tp=8")
	if r := seconds(half) / seconds(full); r < 0.49 || r > 0.52 {
		t.Errorf("half the layers take %.3f of the time", r)
	}
	for args, want := range map[string]string{
		"--recipe deepseek-v3":                            "name one, such as --on",
		"--recipe standard-7x --on 8xa100":                "did you mean standard-7",
		"--recipe deepseek-v3 model.layers=9 --on 8xa100": "model.layers=9 cannot change it",
		"--recipe llama3-405x --on this":                  "did you mean llama3-405b?",
		file + " model.dmi=3 --on 8xa100":                 "unknown key model.dmi",
		file + " --on thsi":                               "thsi",
		"--on 8xa100":                                     "needs a config or --recipe",
		"model.layers=9":                                  "plan needs a config or --recipe",
	} {
		code, _, errs := anneal(append([]string{"plan"}, strings.Fields(args)...)...)
		if code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("anneal plan %s: exit %d, %s", args, code, errs)
		}
	}
}

// A search over published runs prints each with its best mesh, and counts those whose published mesh is faster.
func TestPublishedRunsAreSearched(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.csv")
	rows := "id,set,model,layers,hidden,heads,ffn,mlp,vocab,seq_len,accelerator,n_gpu,tp,pp,dp,dp_kind,micro_batch," +
		"global_batch_seqs,recompute,step_time_s\n" +
		"a,x,GPT 5B,32,4096,32,16384,gelu,51200,2048,A100-SXM-80GB,16,1,1,16,zero-3,2,64,full,3\n" +
		"b,x,GPT 50B,48,9216,72,36864,gelu,51200,2048,A100-SXM-80GB,16,1,1,16,zero-0,2,64,none,3\n"
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := anneal("bench", "plan", "--published", "--search", "--rows", file, "--json")
	var got struct {
		Searches []bench.PublishedSearch
		Runs     int
		Fit      int
		Slower   int
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v\n%s", code, err, errs)
	}
	if got.Runs != 2 || got.Fit != 1 || got.Slower != 0 || got.Searches[0].ID != "a" || got.Searches[0].Gain <= 0 {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{"2 runs: for 1 the published mesh", "predicted not to fit", "GPT 50B"} {
		if !strings.Contains(errs, want) {
			t.Errorf("no %q: %s", want, errs)
		}
	}
	code, _, errs = anneal("bench", "plan", "--search")
	if code != exitUsage || !strings.Contains(errs, "--published") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
