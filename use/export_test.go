package use

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/device"
	"anneal/gguf"
	"anneal/run"
	"anneal/safetensors"
	"anneal/tensor"
	"anneal/train/traintest"
)

// An export whose weights or settings are not the run's is refused: rows that are permuted, a matrix that is
// transposed, two that are swapped, one element, also of a token that no probe has, and a setting that changes what is
// computed.
func TestExportsThatDifferAreRefused(t *testing.T) {
	const q, k, embed = "model.layers.1.self_attn.q_proj.weight", "model.layers.1.self_attn.k_proj.weight",
		"model.embed_tokens.weight"
	r := exported(t)
	for name, c := range map[string]struct {
		says   string
		change func(values map[string][]float32)
		config [2]string
	}{
		"as it was": {},
		"permuted rows": {says: "element 0 of " + q, change: func(v map[string][]float32) {
			for i := range 32 {
				v[q][i], v[q][32+i] = v[q][32+i], v[q][i]
			}
		}},
		"transposed": {says: q, change: func(v map[string][]float32) {
			for i := range 32 {
				for j := range i {
					v[q][i*32+j], v[q][j*32+i] = v[q][j*32+i], v[q][i*32+j]
				}
			}
		}},
		"swapped": {says: q, change: func(v map[string][]float32) { v[q], v[k] = v[k], v[q] }},
		"an unseen token": {says: embed, change: func(v map[string][]float32) {
			v[embed][len(v[embed])-1] += 1e-6
		}},
		"another base":       {says: "logits differ", config: [2]string{`"rope_theta": 10000`, `"rope_theta": 10`}},
		"another vocabulary": {says: "do not fit", config: [2]string{`"vocab_size": `, `"vocab_size": 1`}},
	} {
		dir := filepath.Join(t.TempDir(), "hf")
		if _, err := r.ExportHF(dir, safetensors.F32); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			path := filepath.Join(dir, "model.safetensors")
			values, shapes := floatsOf(t, path)
			c.change(values)
			var list []safetensors.Tensor
			for name, v := range values {
				list = append(list, safetensors.Float32(name, safetensors.F32, shapes[name], v))
			}
			if err := safetensors.WriteFile(path, list, nil); err != nil {
				t.Fatal(err)
			}
		}
		if c.config[0] != "" {
			path := filepath.Join(dir, "config.json")
			text, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(text, []byte(c.config[0])) {
				t.Fatalf("%s: %v", text, err)
			}
			text = bytes.ReplaceAll(text, []byte(c.config[0]), []byte(c.config[1]))
			if err := os.WriteFile(path, text, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		err := r.checkExport(dir, &ExportReport{DType: "F32"})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// An export that fails its check leaves nothing behind, and the next one has the place.
func TestARefusedExportLeavesNothing(t *testing.T) {
	r := exported(t)
	home := t.TempDir()
	dir := filepath.Join(home, "hf")
	dev := r.dev
	r.dev = unready{dev}
	_, err := r.ExportHF(dir, safetensors.F32)
	r.dev = dev
	if err == nil || !strings.Contains(err.Error(), "would not be the run's") {
		t.Fatalf("an export that is wrong is taken: %v", err)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("a refused export leaves %v, %v", left, err)
	}
	if _, err := r.ExportHF(dir, safetensors.F32); err != nil {
		t.Errorf("after one that was refused: %v", err)
	}
}

// An export says so if old versions of transformers would compute another factor of YaRN than the run's.
func TestExportNotesTheFactorOfYaRN(t *testing.T) {
	for original, notes := range map[string]int{"8": 0, "16": 1} { // the context is 32
		r := exported(t, "model.rope_scaling=yarn:4", "model.rope_original_context="+original)
		report, err := r.ExportHF(filepath.Join(t.TempDir(), "hf"), "F32")
		if err != nil || len(report.Notes) != notes {
			t.Errorf("from %s tokens: %+v, %v", original, report, err)
		}
	}
}

// A weight that is too large for a format is named with its value, and is no sign of divergence.
func TestLargeWeightsDoNotFitInF16(t *testing.T) {
	r := exported(t)
	for _, p := range r.Model.Params() {
		if p.Name == "layers.1.mlp.down" {
			p.Value.F32()[40] = -70_000
		}
	}
	dir := t.TempDir()
	for to, err := range map[string]error{
		"F16": func() error { _, err := r.ExportHF(filepath.Join(dir, "f16"), "F16"); return err }(),
		"f16": func() error { _, err := r.ExportGGUF(filepath.Join(dir, "f16.gguf"), gguf.F16); return err }(),
	} {
		var p config.Problem
		if !errors.As(err, &p) || !strings.HasPrefix(p.Message, "-70000 of ") || p.Try != "--dtype bf16" {
			t.Errorf("%s: %v", to, err)
		}
	}
	if _, err := r.ExportHF(filepath.Join(dir, "bf16"), "BF16"); err != nil {
		t.Error(err)
	}
	if _, err := r.ExportGGUF(filepath.Join(dir, "q8.gguf"), gguf.Q8_0); err != nil {
		t.Error(err)
	}
}

// exported is a trained run.
func exported(t *testing.T, set ...string) *Trained {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{
		Config: with(t, traintest.Data(t), append(set, "train.steps=2", "model.tie_embeddings=false")...), Dir: dir,
	})
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// unready has no memory for the check of an export.
type unready struct{ device.Device }

func (d unready) NewArena(name string, size int) (*tensor.Arena, error) {
	if name == "weights of a layer" {
		return nil, errors.New("no memory")
	}
	return d.Device.NewArena(name, size)
}

// reserving notes what is reserved on a device.
type reserving struct {
	device.Device
	bytes map[string]int
}

func (d *reserving) NewArena(name string, size int) (*tensor.Arena, error) {
	d.bytes[name] += size
	return d.Device.NewArena(name, size)
}

// The check of an export takes the memory of a layer or of the embedding, however many layers there are.
func TestExportsAreCheckedInBoundedMemory(t *testing.T) {
	var all []map[string]int
	for _, layers := range []string{"2", "9"} {
		r := exported(t, "model.layers="+layers)
		d := &reserving{r.dev, map[string]int{}}
		r.dev = d
		if _, err := r.ExportHF(filepath.Join(t.TempDir(), "hf"), safetensors.BF16); err != nil {
			t.Fatal(err)
		}
		r.dev = d.Device
		all = append(all, d.bytes)
	}
	few, many := all[0], all[1]
	for name, n := range many {
		if n != few[name] {
			t.Errorf("%s: %d bytes for 9 layers, %d for 2", name, n, few[name])
		}
	}
	if many["weights of a layer"] == 0 {
		t.Errorf("%v", many)
	}
}
