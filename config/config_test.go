package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"anneal/internal/filetest"
	"anneal/internal/yaml"
	"anneal/model"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

const minimal = "data:\n  path: /d\n"

// parse is Load for the text of a file.
func parse(text []byte, path string, overrides []string) (*Config, error) {
	return Default().read(text, Sources{File: path, Overrides: overrides})
}

func problemsOf(t *testing.T, text string, overrides ...string) []Problem {
	t.Helper()
	_, err := parse([]byte(text), "run.yaml", overrides)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("no config error for\n%s\noverrides %v: %v", text, overrides, err)
	}
	return e.Problems
}

// Every key of Config is explained, and nothing is explained that is not a key.
func TestEveryKeyIsDocumented(t *testing.T) {
	if len(allKeys) != len(notes) {
		t.Errorf("%d keys in Config, %d explained", len(allKeys), len(notes))
	}
	for _, k := range allKeys {
		if k.Doc == "" {
			t.Errorf("%s is not explained", k.Name)
		}
		if got, err := Explain(k.Name); err != nil || got.Name != k.Name {
			t.Errorf("Explain(%s) = %v, %v", k.Name, got, err)
		}
	}
}

func TestDefaultsWorkTogether(t *testing.T) {
	c, err := parse([]byte(minimal), "run.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Model.FFN != 1024 || c.Model.KVHeads != 6 || c.Model.HeadDim != 64 || c.Train.MicroBatch != 16 ||
		c.Schedule.Warmup != 10 {
		t.Errorf("derived ffn %d, kv_heads %d, head_dim %d, micro_batch %d, warmup %d; want 1024, 6, 64, 16, 10",
			c.Model.FFN, c.Model.KVHeads, c.Model.HeadDim, c.Train.MicroBatch, c.Schedule.Warmup)
	}
	for key, want := range map[string]string{
		"data.path": "run.yaml:2", "model.dim": "default", "model.kv_heads": "derived: kv_heads = heads",
	} {
		if got := c.Origin(key).String(); got != want {
			t.Errorf("%s comes from %q, want %q", key, got, want)
		}
	}
}

func TestUnknownKeysNameTheNearestAndThePosition(t *testing.T) {
	for _, c := range []struct{ text, at, try string }{
		{minimal + "model:\n  dmi: 4\n", "run.yaml:4:3", "model.dim"},
		{minimal + "modle:\n  dim: 4\n", "run.yaml:3:1", "model"},
		{minimal + "train:\n  lr: 1\n", "run.yaml:4:3", "optimizer.lr"},
		{minimal + "optimizer: {weigth_decay: 1}\n", "run.yaml:3:13", "optimizer.weight_decay"},
		{minimal + "zzzzzzzz: 1\n", "run.yaml:3:1", "`anneal explain` for the list of keys"},
	} {
		p := problemsOf(t, c.text)
		if len(p) != 1 || p[0].At != c.at || p[0].Try != c.try || !strings.Contains(p[0].Message, "unknown key") {
			t.Errorf("%q:\n got %+v\nwant at %s try %s", c.text, p, c.at, c.try)
		}
	}
	p := problemsOf(t, minimal, "model.dims=4")
	if p[0].Try != "model.dim" || p[0].At != "command line: model.dims=4" {
		t.Errorf("override: %+v", p)
	}
	p = problemsOf(t, minimal, "model=4")
	if len(p) != 1 || !strings.Contains(p[0].Message, "model is a section") ||
		!strings.HasPrefix(p[0].Try, "model.key=value") {
		t.Errorf("a section with a value: %+v", p)
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	p := problemsOf(t, "model:\n  dim: 256\n  heads: 6\n  nope: 1\noptimizer:\n  lr: fast\n  name: adm\n",
		"train.steps=0", "x")
	var got []string
	for _, q := range p {
		got = append(got, q.Key)
	}
	want := []string{"model.nope", "optimizer.lr", "", "optimizer.name", "model.heads", "train.steps", "data.path"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("keys of the problems (-want +got):\n%s", d)
	}
}

// A file that is not a config at all is told so in one problem, or in a report of bounded length.
func TestReportsStayShort(t *testing.T) {
	if p := problemsOf(t, "a: [", "x"); len(p) != 1 || !strings.Contains(p[0].Message, "not YAML") {
		t.Errorf("broken YAML: %+v", p)
	}
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	if p := problemsOf(t, b.String(), "data.path=/d"); len(p) != maxProblems+1 ||
		p[maxProblems].Message != "and 980 more mistakes" {
		t.Errorf("1000 unknown keys gave %d problems, the last %+v", len(p), p[len(p)-1])
	}
}

func TestHeadsThatDoNotDivideTeach(t *testing.T) {
	p := problemsOf(t, minimal+"model:\n  dim: 256\n  heads: 6\n")
	want := "model.heads = 6 does not divide model.dim = 256\n  at run.yaml:5:3\n" +
		"  try model.heads = 4 or 8, or model.dim = 264"
	if got := p[0].Error(); len(p) != 1 || got != want {
		t.Errorf("got %d problems, the first\n%s\nwant\n%s", len(p), got, want)
	}
	if _, err := parse([]byte(minimal+"model:\n  dim: 256\n  heads: 6\n  head_dim: 32\n"), "run.yaml",
		nil); err != nil {
		t.Errorf("a head size that is given frees heads from dim: %v", err)
	}
}

func TestConfigsThatCannotWorkAreRefused(t *testing.T) {
	for _, c := range []struct {
		key       string
		overrides []string
	}{
		{"model.kv_heads", []string{"model.kv_heads=4"}},
		{"model.kv_heads", []string{"model.kv_heads=12"}},
		{"model.head_dim", []string{"model.head_dim=33"}},
		{"model.heads", []string{"model.dim=390", "model.heads=6"}},
		{"model.context", []string{"model.context=1"}},
		{"model.context", []string{"model.context=32768"}},
		{"train.batch_tokens", []string{"train.batch_tokens=1000"}},
		{"train.micro_batch", []string{"train.micro_batch=5"}},
		{"optimizer.lr", []string{"optimizer.lr=0"}},
		{"optimizer.lr", []string{"optimizer.lr=NaN"}},
		{"optimizer.lr", []string{"optimizer.lr=1e999"}},
		{"schedule.warmup", []string{"train.steps=10", "schedule.warmup=11"}},
		{"schedule.warmup", []string{"train.steps=10", "schedule.name=cyclic", "schedule.warmup=2"}},
		{"schedule.branches", []string{"train.steps=2000", "schedule.name=cyclic", "schedule.branches=10,5"}},
		{"schedule.branches", []string{"train.steps=10", "schedule.name=step", "schedule.branches=8, 4"}},
		{"schedule.branches", []string{"train.steps=10", "schedule.name=restarts", "schedule.branches=4, 11"}},
		{"schedule.branches", []string{"train.steps=10", "schedule.name=power", "schedule.branches=4"}},
		{"schedule.final_ratio", []string{"train.steps=10", "schedule.name=step", "schedule.final_ratio=0"}},
		{"schedule.decay_fraction", []string{"train.steps=10", "schedule.name=step", "schedule.decay_fraction=0.3"}},
		{"schedule.decay_fraction", []string{"schedule.name=one_cycle", "schedule.decay_fraction=0.3"}},
		{"schedule.final_ratio", []string{"schedule.name=wsd", "schedule.decay_shape=exponential",
			"schedule.final_ratio=0"}},
		{"schedule.horizon", []string{"train.steps=10", "schedule.horizon=9", "schedule.final_ratio=0"}},
		{"schedule.horizon", []string{"train.steps=10", "schedule.warmup=4", "schedule.horizon=4"}},
		{"schedule.horizon", []string{"schedule.name=step", "schedule.horizon=90%"}},
		{"schedule.horizon", []string{"schedule.name=wsd", "schedule.horizon=90%"}},
		{"schedule.weight_decay", []string{"optimizer.weight_decay=0", "schedule.weight_decay=linear"}},
		{"schedule.momentum_warmup", []string{"schedule.momentum_warmup=100"}},
		{"schedule.momentum_warmup", []string{"optimizer.name=sgd", "schedule.momentum_warmup=100"}},
		{"schedule.momentum_warmup", []string{"optimizer.name=muon", "optimizer.momentum=0.85",
			"schedule.momentum_warmup=100"}},
		{"optimizer.decay_timescale", []string{"optimizer.decay_timescale=-1"}},
		{"optimizer.patterns", []string{"optimizer.patterns=layers.*"}},
		{"optimizer.patterns", []string{"optimizer.patterns=layers.[ lr_ratio=1"}},
		{"optimizer.patterns", []string{"optimizer.patterns=embed lr_ratio=-1"}},
		{"optimizer.patterns", []string{"optimizer.patterns=embed rate=1"}},
		{"train.steps", []string{"train.steps=1099511627776", "train.batch_tokens=1099511627776"}},
		{"data.skip", []string{"data.skip=" + strings.Repeat("100:200,", 8000) + "100:200"}},
		{"optimizer.decay_timescale", []string{"optimizer.decay_timescale=0.2", "optimizer.weight_decay=0.2"}},
		{"optimizer.decay_timescale", []string{"optimizer.name=sgd", "optimizer.decay_timescale=0.2"}},
		{"optimizer.decay_timescale", []string{"optimizer.name=adafactor", "optimizer.variant=palm",
			"optimizer.decay_timescale=0.2"}},
		{"optimizer.groups.matrix.lr_ratio", []string{"optimizer.groups.matrix.lr_ratio=1e5"}},
		{"optimizer.groups.norm.weight_decay", []string{"optimizer.groups.norm.weight_decay=2000"}},
		{"optimizer.weight_decay", []string{"optimizer.weight_decay=2000"}},
		{"optimizer.adamw_lr", []string{"optimizer.name=muon", "optimizer.adamw_lr=50"}},
		{"model.dropout", []string{"model.dropout=1"}},
		{"model.dropout", []string{"model.dropout=-0.1"}},
		{"model.stochastic_depth", []string{"model.stochastic_depth=1"}},
		{"memory.recompute", []string{"memory.recompute=some"}},
		{"memory.recompute", []string{"memory.recompute=every:0"}},
		{"memory.recompute", []string{"memory.recompute=every:6"}},
		{"memory.recompute", []string{"memory.recompute=budget:much"}},
		{"memory.offload", []string{"memory.offload=all"}},
		{"memory.offload", []string{"memory.offload=optimizer", "device=cuda"}},
		{"memory.offload", []string{"memory.offload=optimizer", "optimizer.name=sophia"}},
		{"memory.offload", []string{"memory.offload=optimizer", "optimizer.name=sgd", "optimizer.momentum=0"}},
		{"memory.offload", []string{
			"memory.offload=optimizer", "optimizer.name=schedulefree", "schedule.name=constant",
		}},
		{"memory.offload", []string{"memory.offload=optimizer", "init.from=x", "init.ewc=1"}},
		{"memory.offload", []string{"memory.offload=optimizer,optimizer"}},
		{"memory.offload", []string{"memory.offload=checkpoints", "memory.recompute=every_layer", "device=cuda"}},
		{"memory.offload", []string{"memory.offload=checkpoints"}},
		{"memory.offload", []string{"memory.offload=optimizer,checkpoints", "memory.recompute=selective"}},
		{"memory.offload", []string{
			"memory.offload=checkpoints", "memory.recompute=every_layer", "parallel.ranks=2", "parallel.pipeline=2",
		}},
		{"memory.offload_dir", []string{"memory.offload_dir=/tmp"}},
		{"precision", []string{"precision=int4"}},
		{"loss_scale.init", []string{"precision=fp16", "loss_scale.dynamic=false", "loss_scale.init=0"}},
		{"loss_scale.init", []string{"precision=fp16", "loss_scale.init=-1"}},
		{"loss_scale.init", []string{"precision=fp16", "loss_scale.init=1e39"}},
		{"loss_scale.interval", []string{"precision=fp16", "loss_scale.interval=0"}},
		{"loss_scale.floor", []string{"precision=fp16", "loss_scale.floor=0"}},
		{"loss_scale.floor", []string{"precision=fp16", "loss_scale.init=2", "loss_scale.floor=4"}},
		{"loss_scale.init", []string{"precision=bf16", "loss_scale.init=1024"}},
		{"fp8.scaling", []string{"precision=fp8", "fp8.scaling=delay"}},
		{"fp8.attention", []string{"precision=bf16", "fp8.attention=true"}},
		{"fp8.attention", []string{"precision=fp8", "fp8.attention=true", "model.attention=longformer:8:4",
			"model.longformer_global_projections=true"}},
		{"fp8.scaling", []string{"precision=fp8", "fp8.scaling=block", "parallel.tensor=2"}},
		{"fp8.history", []string{"precision=fp8", "fp8.scaling=block", "fp8.history=8"}},
		{"fp8.history", []string{"precision=fp8", "fp8.scaling=delayed", "fp8.history=0"}},
		{"fp8.margin", []string{"precision=fp8", "fp8.scaling=delayed", "fp8.margin=-1"}},
		{"fp8.scaling", []string{"precision=fp16", "fp8.scaling=delayed"}},
		{"fp8.scaling", []string{"precision=fp8", "fp8.scaling=delayed", "average.ema=0.99"}},
		{"schedule.name", []string{"schedule.name=cosin"}},
		{"model.layers", []string{"model.layers=99999999999999999999"}},
		{"model.layers", []string{"model.layers=-1"}},
		{"seed", []string{"seed=-1"}},
		{"data.document_mask", []string{"data.document_mask=yes"}},
		{"train.z_loss", []string{"train.z_loss=-1e-4"}},
		{"train.z_loss", []string{"train.z_loss=1"}},
		{"model.logit_softcap", []string{"model.logit_softcap=-30"}},
		{"model.logit_softcap", []string{"model.logit_softcap=1e-9"}},
		{"guard.spike_z", []string{"guard.spike_z=-6"}},
		{"guard.window", []string{"guard.window=3"}},
		{"guard.window", []string{"guard.spike_z=6", "guard.window=32769", "parallel.outer.groups=2"}},
		{"average.ema", []string{"average.ema=1"}},
		{"average.ema", []string{"average.ema=-0.1"}},
		{"data.skip", []string{"data.skip=8:8"}},
		{"data.skip", []string{"data.skip=0:8,4:12"}},
		{"data.skip", []string{"data.skip=all"}},
	} {
		p := problemsOf(t, minimal, c.overrides...)
		if len(p) != 1 || p[0].Key != c.key || p[0].At == "" && c.key != "model.heads" {
			t.Errorf("%v: %+v, want one problem of %s", c.overrides, p, c.key)
		}
	}
}

func TestFilesThatAreNotConfigsAreRefused(t *testing.T) {
	for _, text := range []string{
		"- a\n- b\n", "just words", "a: [", "model: 4", "model:\n  dim: [1]\n", "seed: {a: 1}", "a: 1\n---\nb: 2\n",
		"seed: 1\nseed: 2\n", "\xff\xfe", "seed: *x", "seed: !!int 3", "model.dim: 4", "? [a]\n: 1\n", "seed: ~\n",
	} {
		if p := problemsOf(t, text+"\n", "data.path=/d"); p[0].At == "" {
			t.Errorf("%q: no position in %+v", text, p[0])
		}
	}
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, make([]byte, yaml.MaxBytes+1), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "missing.yaml"), dir, big} {
		if _, err := Load(path, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Whatever a config is, or stands under its name, is refused within 100 ms and 64 MiB.
func TestHostileConfigsAreRefusedAtOnce(t *testing.T) {
	files := filetest.NotFiles(t, "run.yaml")
	for what, text := range map[string]string{
		"brackets": strings.Repeat("[", 60000), "a bomb": "a: &a [x,x]\n" +
			"b: &b [*a,*a]\n" + strings.Repeat("c: [*b,*b]\n", 2000), "1 MiB": strings.Repeat("a: 1\n", 1<<20/5),
		"a deep value": "seed: " + strings.Repeat("[", 60) + strings.Repeat("1,", 3900) + strings.Repeat("]", 60),
		"unknown keys": unknownKeys(2700),
		"long keys":    strings.Repeat("model.dimension"+strings.Repeat("s", 40)+": 1\n", 1000),
		"items":        strings.Repeat("- 1\n", 4000),
	} {
		files[what] = filepath.Join(t.TempDir(), "run.yaml")
		if err := os.WriteFile(files[what], []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for what, path := range files {
		err := filetest.Refused(t, what, func() error { _, err := Load(path, []string{"data.path=/d"}); return err })
		if e := (*Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), path) ||
			len(err.Error()) > 4000+len(path)*maxProblems {
			t.Errorf("%s: %.1000v", what, err)
		}
	}
}

func unknownKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d: 1\n", strings.Repeat("k", 15), i)
	}
	return b.String()
}

// Validate checks a copy: a config that code has put together keeps its zeros until Resolve.
func TestValidateDoesNotChangeTheConfig(t *testing.T) {
	c := Default()
	c.Data.Path = "d"
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Model.FFN != 0 || len(c.origins) != 0 {
		t.Errorf("ffn = %d, origins = %v after Validate", c.Model.FFN, c.origins)
	}
	c.Derive("model.vocab", 4096, "the data set's tokenizer")
	if got := c.Origin("model.vocab").String(); c.Model.Vocab != 4096 || got != "derived: the data set's tokenizer" {
		t.Errorf("vocab = %d from %q", c.Model.Vocab, got)
	}
}

// A mistake is told with what would be right: every name that is known, the interval as it is.
func TestMistakesNameWhatIsRight(t *testing.T) {
	for _, c := range []struct{ override, want string }{
		{"precision=fp4", "try fp8; there are bf16, bf16_sr, fp16, fp8, tf32, fp32, fp64"},
		{"loss_scale.init=2", "only fp16 uses it"},
		{"schedule.decay_fraction=0", "lies outside (0, 1]"},
		{"schedule.final_ratio=1.5", "lies outside [0, 1]"},
		{"optimizer.beta2=1", "lies outside [0, 1)"},
		{"optimizer.lr=0", "lies outside (0, 1e+06)"},
	} {
		if p := problemsOf(t, minimal, c.override); len(p) != 1 || !strings.Contains(p[0].Error(), c.want) {
			t.Errorf("%s: %+v, want %q", c.override, p, c.want)
		}
	}
	if _, err := parse([]byte(minimal), "run.yaml", []string{
		"schedule.name=wsd", "schedule.decay_fraction=1", "schedule.final_ratio=1", "optimizer.beta1=0",
	}); err != nil {
		t.Errorf("values on closed bounds: %v", err)
	}
	c := Default()
	c.Data.Path, c.Train.Minutes = "d", math.NaN()
	if err := c.Validate(); err == nil {
		t.Error("train.minutes = NaN, set by code, passed")
	}
}

func TestByteOrderMarkIsNoPartOfAKey(t *testing.T) {
	if _, err := parse([]byte("\ufeff"+minimal), "run.yaml", nil); err != nil {
		t.Error(err)
	}
}

// values compares configurations by the values of their keys.
var values = cmp.Options{
	cmpopts.IgnoreUnexported(Config{}),
	cmp.AllowUnexported(model.Recompute{}, Branches{}, amount{}, BatchRamp{}, LengthWarmup{}, Order{}, orderPhase{},
		Mix{}, Weights{}, weightsEntry{}, Weighting{}, Patterns{}, namedGroup{}),
}

// Whatever was loaded, its YAML loads to the same values.
func TestYAMLRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		heads := rapid.IntRange(1, 8).Draw(t, "heads")
		c := Default()
		c.Seed = rapid.Uint64().Draw(t, "seed")
		c.Model.Heads, c.Model.Dim = heads, heads*2*rapid.IntRange(1, 50).Draw(t, "half head")
		c.Model.TieEmbeddings = rapid.Bool().Draw(t, "tie")
		c.Optimizer.LR = rapid.Float64Range(1e-12, 9).Draw(t, "lr")
		c.Data.Path = "/" + rapid.String().Draw(t, "path")
		c.Data.Path = filepath.Clean(c.Data.Path)
		c.Resolve()
		back, err := parse(c.YAML(), rapid.String().Draw(t, "file"), nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, c.YAML())
		}
		if d := cmp.Diff(c, back, values); d != "" {
			t.Fatalf("(-wrote +read):\n%s\n%s", d, c.YAML())
		}
		if string(back.YAML()) == "" {
			t.Fatal("empty")
		}
	})
}

// Any bytes give a config or an *Error whose problems all say something, within 32 MiB of allocations for 4 KiB of
// text; a config that loads is written and read back.
func FuzzLoad(f *testing.F) {
	files := [][]byte{
		[]byte(minimal), []byte("model: {dim: 256, heads: 4}\ndata: {path: x}\n"), []byte("a: &x [*x]\n"),
		Default().YAML(),
	}
	// a byte that is no text came back as è
	for i, override := range []string{"model.dim=512", "", "seed=1", "data.path=\a\xe8"} {
		f.Add(uint8(i), []byte{}, override)
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte, override string) {
		if len(override) > 64 {
			t.Skip("long texts take long to minimize")
		}
		text := filetest.Edit(t, files[int(which)%len(files)], edits)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := parse(text, "f.yaml", []string{override})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
			t.Fatalf("%d bytes allocated for %d bytes of text", n, len(text))
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("%T %v", err, err)
			}
			for _, p := range e.Problems {
				if p.Message == "" {
					t.Fatalf("an empty message in %+v", e.Problems)
				}
			}
			return
		}
		back, err := parse(c.YAML(), "g.yaml", nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, c.YAML())
		}
		if d := cmp.Diff(c, back, values); d != "" {
			t.Fatal(d)
		}
	})
}
