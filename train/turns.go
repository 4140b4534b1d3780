package train

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"anneal/dataset"
)

// turns reads data sets in turn, a micro-batch from each: micro-batch i of a run is of set i mod k, whole, and samples within a
// set come in its own shuffled order.
type turns struct {
	sets []*dataset.Dataset
	from []*dataset.Loader
	rows uint64 // samples in a micro-batch
}

// openTurns opens the training splits of directories that were built with one tokenizer.
func openTurns(dirs []string, tokenizer dataset.Tokenizer, context int, rows int, seed uint64) (*turns, error) {
	t := &turns{rows: uint64(rows)}
	for _, dir := range dirs {
		if err := t.open(dir, tokenizer, context, seed); err != nil {
			t.close()
			return nil, &DataError{err}
		}
	}
	return t, nil
}

func (t *turns) open(dir string, tokenizer dataset.Tokenizer, context int, seed uint64) error {
	set, err := dataset.Open(dir)
	if err != nil {
		return err
	}
	t.sets = append(t.sets, set)
	if err := set.RequireTokenizer(tokenizer); err != nil {
		return err
	}
	loader, err := set.TrainLoader(context, seed)
	t.from = append(t.from, loader)
	return err
}

func (t *turns) close() {
	for _, s := range t.sets {
		s.Close()
	}
}

// Batch fills b with a micro-batch: first must be where one begins, and rows their size.
func (t *turns) Batch(b *dataset.Batch, first uint64, rows int) error {
	turn, k := first/t.rows, uint64(len(t.from))
	if first%t.rows != 0 || uint64(rows) != t.rows {
		return fmt.Errorf("samples %d to %d are not one micro-batch of %d", first, first+uint64(rows)-1, t.rows)
	}
	return t.from[turn%k].Batch(b, turn/k*t.rows, rows)
}

func (t *turns) Context() int { return t.from[0].Context() }

func (t *turns) Vocab() int { return t.from[0].Vocab() }

// State is the state after the given number of samples.
func (t *turns) State(samples uint64) dataset.State {
	s := t.from[0].State(samples)
	sum := sha256.New()
	fmt.Fprintln(sum, t.rows)
	for _, set := range t.sets {
		io.WriteString(sum, set.Fingerprint()+"\n")
	}
	s.Data = hex.EncodeToString(sum.Sum(nil))
	return s
}

// Check fails if s was saved with other data, under which its sample counter means something else.
func (t *turns) Check(s dataset.State) error {
	if t.State(s.Sample) != s {
		return fmt.Errorf("the run was trained on other data, or on as much of it in another order: other sources, model.context, train.micro_batch or seed\n  keep them, or start a new run")
	}
	return nil
}
