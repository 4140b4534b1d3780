package use

import (
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// A run of GPT-2 resumes bit for bit, on other threads and with layers that run again, too, and its model generates.
func TestGPT2RunsResumeAndGenerate(t *testing.T) {
	data := traintest.Data(t)
	dir := checkResume(t, func() *config.Config { return familyConfig("gpt2", data) })
	trained, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer trained.Close()
	if c := trained.Model.Config; c.Family != "gpt2" || !c.Positions.Learned() || c.FFN != 4*c.Dim {
		t.Errorf("the trained model is %+v", c)
	}
	context := trained.Model.Config.Context
	if n, _, err := generate(trained, GenerateOptions{Prompt: "the", MaxTokens: 2 * context}); n != 2*context ||
		err != nil {
		t.Errorf("generated %d tokens, %v; want %d, beyond the table of positions", n, err, 2*context)
	}
}
