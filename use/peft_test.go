package use

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/run"
	"anneal/safetensors"
	"anneal/train/traintest"
)

// floatsOf returns the tensors of a file.
func floatsOf(t *testing.T, path string) (values map[string][]float32, shapes map[string][]int) {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	values, shapes = map[string][]float32{}, map[string][]int{}
	for _, x := range f.Tensors() {
		n := 1
		for _, d := range x.Shape {
			n *= d
		}
		list := make([]float32, n)
		if err := safetensors.ReadFloat32(f, x.Name, list); err != nil {
			t.Fatal(err)
		}
		values[x.Name], shapes[x.Name] = list, x.Shape
	}
	return values, shapes
}

// The weights of the model that a run started from, with the adapters that it exports for peft, by peft's formulas, are
// those of the run's own export. Made once, peft itself loaded such a directory with logits within 1e-6 of these.
func TestExportedAdaptersMakeTheMergedModel(t *testing.T) {
	for _, dora := range []string{"false", "true"} {
		from, dir := adaptedRun(t, "model.lora_dora="+dora, "model.lora_targets=attention.*")
		out := t.TempDir()
		open := func(dir string, apart bool) *Trained {
			r, err := OpenWith(dir, OpenOptions{Threads: 1, Apart: apart})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.Close)
			return r
		}
		base, merged, alone := filepath.Join(out, "base"), filepath.Join(out, "merged"), filepath.Join(out, "alone")
		if _, err := open(from, false).ExportHF(base, "F32"); err != nil {
			t.Fatal(err)
		}
		if _, err := open(dir, false).ExportHF(merged, "F32"); err != nil {
			t.Fatal(err)
		}
		report, err := open(dir, true).ExportPEFT(alone, "F32")
		if err != nil || report.Base != "" || len(report.Modules) != 4 || !strings.Contains(report.Notes[0], from) {
			t.Fatalf("%+v, %v", report, err)
		}
		if _, err := open(from, true).ExportPEFT(filepath.Join(out, "none"), "F32"); err == nil ||
			!strings.Contains(err.Error(), "has no adapters") {
			t.Errorf("a run without adapters: %v", err)
		}
		var c struct {
			R         int     `json:"r"`
			LoraAlpha float64 `json:"lora_alpha"`
			UseDora   bool    `json:"use_dora"`
		}
		text, err := os.ReadFile(filepath.Join(alone, "adapter_config.json"))
		if err != nil || json.Unmarshal(text, &c) != nil || c.R != 2 || c.UseDora != (dora == "true") {
			t.Fatalf("%+v, %v of %s", c, err, text)
		}
		weights, _ := floatsOf(t, filepath.Join(base, "model.safetensors"))
		want, _ := floatsOf(t, filepath.Join(merged, "model.safetensors"))
		adapters, shapes := floatsOf(t, filepath.Join(alone, "adapter_model.safetensors"))
		changed := 0
		for name, w := range weights {
			at := "base_model.model." + strings.TrimSuffix(name, ".weight")
			if a := adapters[at+".lora_A.weight"]; a != nil {
				changed++
				w = peftWeight(w, a, adapters[at+".lora_B.weight"], adapters[at+".lora_magnitude_vector"],
					shapes[at+".lora_A.weight"][1], c.R, c.LoraAlpha)
			}
			for i := range w {
				if math.Abs(float64(w[i]-want[name][i])) > 1e-5*(1+math.Abs(float64(w[i]))) {
					t.Fatalf("dora %s: %s[%d] is %v, merged %v", dora, name, i, w[i], want[name][i])
				}
			}
		}
		perModule := map[string]int{"false": 2, "true": 3}[dora]
		if changed == 0 || changed%4 != 0 || changed*perModule != len(adapters) {
			t.Errorf("dora %s: %d weights have adapters, of %d tensors", dora, changed, len(adapters))
		}
	}
}

// The base of adapters is the model in the Hugging Face layout that they adapt, also of a run that goes on with the
// adapters of another. Its vocabulary, positions and weights must be those that the run has without adapters. Of a run,
// the checkpoint is named.
func TestAdaptersNameTheirBase(t *testing.T) {
	data, from, base := traintest.Data(t), filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "base")
	mustRun(t, run.Options{Config: with(t, data, "checkpoint.every=5", "checkpoint.keep=10"), Dir: from})
	export := func(dir string) (*AdapterReport, error) {
		r, err := OpenWith(dir, OpenOptions{Threads: 1, Apart: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return r.ExportPEFT(filepath.Join(t.TempDir(), "peft"), "BF16")
	}
	r, err := Open(from, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.ExportHF(base, "F32"); err != nil {
		t.Fatal(err)
	}
	first := adapt(t, base, data, "train.steps=2", "schedule.warmup=1")
	second := adapt(t, first, data, "train.steps=2", "schedule.warmup=1")
	for _, dir := range []string{first, second} {
		if report, err := export(dir); err != nil || report.Base != base || len(report.Notes) > 0 {
			t.Errorf("%s: %+v, %v; want the base %s", dir, report, err, base)
		}
	}
	grown := adapt(t, base, data, "train.steps=2", "schedule.warmup=1", "model.vocab=384")
	var p config.Problem
	if _, err := export(grown); !errors.As(err, &p) || p.Key != "model.vocab" {
		t.Errorf("with rows that the base has not: %v", err)
	}
	stretched := adapt(t, base, data, "train.steps=2", "schedule.warmup=1", "model.rope_scaling=linear:2")
	if _, err := export(stretched); !errors.As(err, &p) || p.Key != "model.rope_scaling" {
		t.Errorf("with positions that the base has not: %v", err)
	}
	if err := os.Rename(base, base+".old"); err != nil {
		t.Fatal(err)
	}
	other, err := Open(first, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExportHF(base, "F32"); err != nil {
		t.Fatal(err)
	}
	if _, err := export(second); !errors.As(err, &p) || p.Key != "init.weights" {
		t.Errorf("with another model in the place of the base: %v", err)
	}
	if err := os.RemoveAll(base); err != nil {
		t.Fatal(err)
	}
	if report, err := export(second); err != nil || report.Base != "" || len(report.Notes) != 1 {
		t.Errorf("without the base: %+v, %v", report, err)
	}
	early := adapt(t, from, data, "train.steps=2", "schedule.warmup=1", "init.step=5")
	if report, err := export(early); err != nil || !strings.Contains(report.Notes[0], " --step 5 DIR") {
		t.Errorf("of an early step of a run: %+v, %v", report, err)
	}
}

// peftWeight returns m·V/‖V‖, or V if m is nil, V = w + α/r·b·a: a [r, in], b [out, r].
func peftWeight(w, a, b, m []float32, in, r int, alpha float64) []float32 {
	v := make([]float32, len(w))
	for o := range len(w) / in {
		sum := 0.0
		for i := range in {
			x := float64(w[o*in+i])
			for k := range r {
				x += alpha / float64(r) * float64(b[o*r+k]) * float64(a[k*in+i])
			}
			v[o*in+i] = float32(x)
			sum += x * x
		}
		for i := range in {
			if m != nil {
				v[o*in+i] *= m[o] / float32(math.Sqrt(sum))
			}
		}
	}
	return v
}
