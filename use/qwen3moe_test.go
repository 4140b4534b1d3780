package use

import (
	"testing"

	"anneal/config"
)

// A run of experts resumes bit for bit, on other threads and with layers that run again, too, and its model generates.
func TestQwen3MoERunsResumeAndGenerate(t *testing.T) {
	data := testData(t)
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
	if n, _, err := generate(trained, GenerateOptions{Prompt: "the", MaxTokens: 2 * c.Context}); n != 2*c.Context || err != nil {
		t.Errorf("generated %d tokens, %v; want %d", n, err, 2*c.Context)
	}
}
