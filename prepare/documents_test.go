package prepare

import (
	"slices"
	"testing"

	"anneal/config"
	"anneal/dataset"
)

// The rows whose documents are counted are the first that a run reads.
func TestDocumentStartsAreThoseOfTheRun(t *testing.T) {
	cfg, err := config.Sources{Overrides: []string{"data.path=" + goData(t), "model.context=256"}}.Load()
	if err != nil {
		t.Fatal(err)
	}
	const n = 64
	starts, err := DocumentStarts(cfg, n)
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenCorpus(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.OpenTraining(cfg); err != nil {
		t.Fatal(err)
	}
	var b dataset.Batch
	if err := c.Train.Batch(&b, 0, n); err != nil {
		t.Fatal(err)
	}
	if got := slices.Concat(starts...); !slices.Equal(got, b.DocStart) || slices.Max(got) == 0 {
		t.Errorf("other documents: %v\nwant %v", got, b.DocStart)
	}
}
