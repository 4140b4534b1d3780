package use

import (
	"strings"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// A run of the recipe resumes bit for bit, on other threads and with layers that run again, too; its model generates,
// and its export is refused by the field that no format has.
func TestAnnealRunsResumeGenerateAndAreNotExported(t *testing.T) {
	data := traintest.Data(t)
	dir := checkResume(t, func() *config.Config {
		c := familyConfig("anneal", data)
		c.Model.Bigram, c.Model.Smear = 64, true
		return c
	})
	trained, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer trained.Close()
	if c := trained.Model.Config; c.Family != "anneal" || !c.X0Skip || !c.QKNorm || c.Activation != "relu2" ||
		c.ValueEmbeddings != "alternate" || c.ZeroInit != "residual" {
		t.Errorf("the trained model is %+v", c)
	}
	if n, _, err := generate(trained, GenerateOptions{Prompt: "the", MaxTokens: 3}); n != 3 || err != nil {
		t.Errorf("generated %d tokens, %v; want 3", n, err)
	}
	trained.Model.Config.LogitSoftcap = 0
	for _, field := range []string{"activation", "value_embeddings", "x0_skip", "bigram", "smear"} {
		_, err := trained.ExportHF(t.TempDir(), "F32")
		if err == nil || !strings.Contains(err.Error(), "model."+field+" = ") {
			t.Errorf("export with model.%s: %v", field, err)
		}
		switch c := &trained.Model.Config; field {
		case "activation":
			c.Activation = "swiglu"
		case "value_embeddings":
			c.ValueEmbeddings = "none"
		case "x0_skip":
			c.X0Skip = false
		case "bigram":
			c.Bigram = 0
		}
	}
}
