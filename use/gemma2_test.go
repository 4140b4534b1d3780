package use

import (
	"path/filepath"
	"testing"

	"anneal/attention"
	"anneal/config"
	"anneal/run"
	"anneal/train/traintest"
)

// A run of Gemma 2 learns, resumes bit for bit, on other threads and with layers that run again, too, and its model
// generates; exported and imported, it is the same.
func TestGemma2RunsResumeAndGenerate(t *testing.T) {
	data := traintest.Data(t)
	dir := checkResume(t, func() *config.Config {
		cfg := familyConfig("gemma2", data)
		cfg.Model.Attention = attention.Patterns{attention.Window{Keys: 8}, attention.Full{}}
		return cfg
	})
	trained, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer trained.Close()
	c := trained.Model.Config
	if c.Family != "gemma2" || c.QKNorm || c.Activation != "geglu" || c.AttentionSoftcap != 50 || c.LogitSoftcap != 30 {
		t.Errorf("the trained model is %+v", c)
	}
	if n, _, err := generate(trained, GenerateOptions{Prompt: "the", MaxTokens: 2 * c.Context}); n != 2*c.Context ||
		err != nil {
		t.Errorf("generated %d tokens, %v; want %d", n, err, 2*c.Context)
	}
	out, back := filepath.Join(t.TempDir(), "hf"), filepath.Join(t.TempDir(), "back")
	if r, err := trained.ExportHF(out, "F32"); err != nil || r.Architecture != "Gemma2ForCausalLM" {
		t.Fatalf("exported %+v, %v", r, err)
	}
	if _, err := run.ImportHF(out, back, ""); err != nil {
		t.Fatal(err)
	}
	imported, err := Open(back, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer imported.Close()
	for _, d := range imported.Model.Config.Differences(c) {
		if !d.Free {
			t.Errorf("imported, %s is %s, and was %s", d.Key, d.Now, d.Was)
		}
	}
}
