package use

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/run"
	"anneal/tensor"
	"anneal/tokenizer"
	"anneal/train/traintest"
)

// The loss of a document that a row holds whole is what the model gives for the document in a row of its own; together
// they are the loss of the split, each token counted once, whatever the micro-batch.
func TestDocumentLossesAreThoseOfTheDocuments(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{
		Config: with(t, data, "train.steps=8", "model.context=128", "train.batch_tokens=512", "precision=fp32"),
		Dir:    dir,
	})
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	losses, err := r.DocumentLosses(context.Background(), data, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, e, err := r.evaluatorOf([]config.Source{{Path: data}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer e.Close()
	counts := c.First.Manifest.Train.Counts
	if uint64(len(losses)) != counts.Documents {
		t.Fatalf("%d losses for %d documents", len(losses), counts.Documents)
	}
	scan, err := c.First.ScanLoader(128)
	if err != nil {
		t.Fatal(err)
	}
	alone := func(tokens []uint32) float32 { // one document in a row, by hand
		n := 0
		eot := c.First.Manifest.Tokenizer.EOT
		_, losses, err := e.Losses(byHand{scan, func(b *dataset.Batch) {
			for i := 0; i <= len(tokens); i++ {
				b.Tokens[i], b.Targets[i], b.DocStart[i] = eot, int32(eot), 0
				if i > 0 {
					b.Tokens[i] = tokens[i-1]
				}
				if i < len(tokens) {
					b.Targets[i] = int32(tokens[i])
					n += int(c.TokenBytes[tokens[i]])
				}
			}
		}}, 1<<40) // padding
		if err != nil {
			t.Fatal(err)
		}
		return float32(dataset.BitsPerByte(sumOf(losses), uint64(n)))
	}
	whole, last, at, doc, nats := 0, 0, 0, 0, 0.0
	for tokens, err := range c.First.Documents(false) {
		if err != nil {
			t.Fatal(err)
		}
		bytes := 0
		for _, id := range tokens {
			bytes += int(c.TokenBytes[id])
		}
		nats += float64(losses[doc]) * math.Ln2 * float64(bytes)
		if end := at + len(tokens) + 1; at/128 == end/128 {
			if want := alone(tokens); math.Abs(float64(losses[doc]-want)) > 1e-4*float64(want) {
				t.Errorf("document %d: %v bits per byte, alone %v", doc, losses[doc], want)
			}
			whole++
			last = doc
		}
		at, doc = at+len(tokens)+1, doc+1
	}
	if whole < 5 {
		t.Errorf("only %d documents are whole in a row", whole)
	}
	if last+1 != len(losses) { // its end was not scored once
		t.Errorf("the last document, %d, is not whole in a row: %d is the last that is", len(losses)-1, last)
	}
	total := 0.0
	for first := uint64(0); first < scan.Windows(); first += uint64(r.Config.Train.MicroBatch) {
		_, losses, err := e.Losses(scan, first)
		if err != nil {
			t.Fatal(err)
		}
		total += sumOf(losses)
	}
	if math.Abs(total-nats) > 1e-5*total {
		t.Errorf("the documents have %v nats, the split %v", nats, total)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.DocumentLosses(stopped, data, nil); err != context.Canceled {
		t.Errorf("stopped: %v", err)
	}
	none := traintest.DataWith(t, 0, tokenizer.TrainOptions{VocabSize: 320})
	if _, err := r.DocumentLosses(context.Background(), none, nil); err != nil {
		t.Errorf("data without a validation split: %v", err)
	}
}

// byHand is a source whose batches are written anew.
type byHand struct {
	dataset.Source
	write func(b *dataset.Batch)
}

func (s byHand) Batch(b *dataset.Batch, first uint64, rows int) error {
	err := s.Source.Batch(b, first, rows)
	s.write(b)
	return err
}

func sumOf(losses *tensor.Tensor) float64 {
	sum := 0.0
	for i := range losses.Len() {
		sum += losses.Float64(i)
	}
	return sum
}
