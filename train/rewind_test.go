package train

import (
	"testing"

	"anneal/config"
	"anneal/prepare"
)

// openedCorpus is the data of a config, open for training until the test ends.
func openedCorpus(t *testing.T, cfg *config.Config) *prepare.Corpus {
	t.Helper()
	c, err := prepare.OpenCorpus(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.OpenTraining(cfg); err != nil {
		t.Fatal(err)
	}
	return c
}
