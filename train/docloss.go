package train

import (
	"context"
	"math"

	"anneal/config"
	"anneal/dataset"
)

// DocumentLosses returns the bits per byte of each document of the training split of the data set in dir, which must
// have been built with the run's tokenizer. It counts a document's tokens and its EOT, over the bytes of its text;
// the result is NaN for a document without scored text. The split is read in order in independent rows of the run's
// context, so the part of a document that continues in the next row has no context from the previous one. Memory: 4
// bytes per document. onProgress takes the tokens done and in total; it may be nil.
func (r *Trained) DocumentLosses(ctx context.Context, dir string, onProgress func(done, total int64)) ([]float32, error) {
	c, e, err := r.evaluatorOf([]config.Source{{Path: dir}})
	if err != nil {
		return nil, err
	}
	defer c.close()
	defer e.close()
	scan, err := c.set.ScanLoader(e.length)
	if err != nil {
		return nil, &DataError{err}
	}
	counts := c.set.Manifest.Train.Counts
	losses := make([]float32, 0, counts.Documents)
	nats, bytes := 0.0, uint64(0)
	finish := func() {
		bits := math.NaN()
		if bytes > 0 {
			bits = dataset.BitsPerByte(nats, bytes)
		}
		losses = append(losses, float32(bits))
		nats, bytes = 0, 0
	}
	eot := int32(c.set.Manifest.Tokenizer.EOT)
	for first := uint64(0); first < scan.Windows(); first += uint64(e.rows) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if onProgress != nil {
			onProgress(int64(first)*int64(e.length), int64(counts.Tokens))
		}
		if err := e.load(scan, first); err != nil {
			return nil, err
		}
		e.tape.Reset(false)
		e.model.Loss(e.tape, e.batch)
		batch := e.batch.HostLosses(e.dev)
		if err := wait(e.dev); err != nil {
			return nil, err
		}
		for i, target := range e.data.Targets {
			if target == dataset.Ignore {
				continue
			}
			nats += batch.Float64(i)
			bytes += uint64(c.byteLen[target])
			if target == eot {
				finish()
			}
		}
	}
	return losses, nil
}
