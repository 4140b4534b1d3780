package train

import (
	"errors"
	"strings"
	"testing"

	"anneal/dataset"
	"anneal/train/traintest"
)

// A source whose rows or ids are not the model's is refused: shorter rows would leave old tokens in the batch, and ids
// without a row of the embedding end the process.
func TestASourceOfAnotherShapeIsRefused(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	cfg.Model.Vocab = 64
	cfg.Resolve()
	tr := trainerOf(t, cfg, 1)
	for _, src := range []dataset.Source{
		dataset.NewRandom(64, cfg.Model.Context/2, 1), dataset.NewRandom(64, 2*cfg.Model.Context, 1),
		dataset.NewRandom(65, cfg.Model.Context, 1),
	} {
		_, err := tr.Step(t.Context(), src)
		if e := new(dataset.Error); !errors.As(err, &e) || !strings.Contains(err.Error(), "the model reads rows of") {
			t.Errorf("rows of %d below %d: %v", src.Context(), src.Vocab(), err)
		}
	}
	if e, err := tr.Step(t.Context(), dataset.NewRandom(64, cfg.Model.Context, 1)); err != nil || e.Step != 1 {
		t.Errorf("step %d: %v", e.Step, err)
	}
}
