package use

import (
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/run"
	"anneal/train/traintest"
)

// A run of experts resumes bit for bit, on other threads and with layers that run again, too, and its model generates.
func TestQwen3MoERunsResumeAndGenerate(t *testing.T) {
	data := traintest.Data(t)
	dir := checkResume(t, func() *config.Config {
		cfg := familyConfig("qwen3_moe", data)
		cfg.Model.SharedExpertFFN, cfg.Model.RouterZLoss = 32, 1e-3
		return cfg
	})
	trained, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer trained.Close()
	c := trained.Model.Config
	if c.Family != "qwen3_moe" || c.Experts != 8 || c.ExpertsPerToken != 2 || c.SharedExpertFFN != 32 {
		t.Errorf("the trained model is %+v", c)
	}
	if n, _, err := generate(trained, GenerateOptions{Prompt: "the", MaxTokens: 2 * c.Context}); n != 2*c.Context ||
		err != nil {
		t.Errorf("generated %d tokens, %v; want %d", n, err, 2*c.Context)
	}
	if _, err := trained.ExportHF(t.TempDir(), "F32"); err == nil ||
		!strings.Contains(err.Error(), "model.shared_expert_ffn = 32") {
		t.Errorf("export with a shared expert: %v", err)
	}
}

// A model of experts is exported as transformers has it, and imported again.
func TestQwen3MoEIsExportedAndImported(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{Config: familyConfig("qwen3_moe", traintest.Data(t)), Dir: dir})
	trained, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer trained.Close()
	out := filepath.Join(t.TempDir(), "hf")
	if r, err := trained.ExportHF(out, "F32"); err != nil || r.Architecture != "Qwen3MoeForCausalLM" {
		t.Fatalf("exported %+v, %v", r, err)
	}
	back := filepath.Join(t.TempDir(), "back")
	if r, err := run.ImportHF(out, back, ""); err != nil || r.Parameters != trained.Model.Count() {
		t.Fatalf("imported %+v, %v", r, err)
	}
	imported, err := Open(back, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer imported.Close()
	for _, d := range imported.Model.Config.Differences(trained.Model.Config) {
		if !d.Free {
			t.Errorf("imported, %s is %s, and was %s", d.Key, d.Now, d.Was)
		}
	}
}
