package train

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/dataset"
)

// The loss of a document that a row holds whole is what the model gives for the document in a row of its own; together
// they are the loss of the split, each token counted once, whatever the micro-batch.
func TestDocumentLossesAreThoseOfTheDocuments(t *testing.T) {
	data, dir := testData(t), filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: with(t, data, "train.steps=8", "model.context=128", "train.batch_tokens=512", "precision=fp32"), Dir: dir})
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
	defer e.close()
	counts := c.First.Manifest.Train.Counts
	if uint64(len(losses)) != counts.Documents {
		t.Fatalf("%d losses for %d documents", len(losses), counts.Documents)
	}
	scan, err := c.First.ScanLoader(128)
	if err != nil {
		t.Fatal(err)
	}
	alone := func(tokens []uint32) float32 { // one document in a row, by hand
		e.data = dataset.Batch{}
		if err := scan.Batch(&e.data, 1<<40, e.rows); err != nil { // padding
			t.Fatal(err)
		}
		eot := c.First.Manifest.Tokenizer.EOT
		n := 0
		for i := 0; i <= len(tokens); i++ {
			e.data.Tokens[i], e.data.Targets[i], e.data.DocStart[i] = eot, int32(eot), 0
			if i > 0 {
				e.data.Tokens[i] = tokens[i-1]
			}
			if i < len(tokens) {
				e.data.Targets[i] = int32(tokens[i])
				n += int(c.TokenBytes[tokens[i]])
			}
		}
		fill(e.batch, &e.data)
		e.batch.Cut(128, 128)
		e.batch.SetPositions(true)
		e.tape.Reset(false)
		e.model.Loss(e.tape, e.batch)
		return float32(dataset.BitsPerByte(e.dev.Sum(&e.batch.Losses), uint64(n)))
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
	for first := uint64(0); first < scan.Windows(); first += uint64(e.rows) {
		if err := e.load(scan, first); err != nil {
			t.Fatal(err)
		}
		e.tape.Reset(false)
		e.model.Loss(e.tape, e.batch)
		total += e.dev.Sum(&e.batch.Losses)
	}
	if math.Abs(total-nats) > 1e-5*total {
		t.Errorf("the documents have %v nats, the split %v", nats, total)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.DocumentLosses(stopped, data, nil); err != context.Canceled {
		t.Errorf("stopped: %v", err)
	}
	if _, err := r.DocumentLosses(context.Background(), buildData(t, 0), nil); err != nil {
		t.Errorf("data without a validation split: %v", err)
	}
}
