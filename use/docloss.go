package use

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"anneal/config"
	"anneal/dataset"
)

// ScoreByLoss returns a function that scores the documents of a data set's training split by [Trained.DocumentLosses]
// under the run in dir, and a description of the scores.
func ScoreByLoss(dir string, threads int) func(ctx context.Context, data string,
	progress func(done, total int64)) (about string, values []float32, err error) {
	return func(ctx context.Context, data string, progress func(done, total int64)) (string, []float32, error) {
		r, err := Open(dir, threads)
		if err != nil {
			return "", nil, err
		}
		defer r.Close()
		values, err := r.DocumentLosses(ctx, data, progress)
		return fmt.Sprintf("bits per byte under %s at step %d", filepath.Base(filepath.Clean(dir)), r.Step), values, err
	}
}

// DocumentLosses returns the bits per byte of each document of the training split of the data set in dir, which must
// have been built with the run's tokenizer. It counts a document's tokens and its EOT, over the bytes of its text;
// the result is NaN for a document without scored text. The split is read in order in independent rows of the run's
// context, so the part of a document that continues in the next row has no context from the previous one. Memory: 4
// bytes per document. onProgress receives the tokens done and in total; it may be nil.
func (r *Trained) DocumentLosses(ctx context.Context, dir string,
	onProgress func(done, total int64)) ([]float32, error) {
	c, e, err := r.evaluatorOf([]config.Source{{Path: dir}})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer e.Close()
	scan, err := c.First.ScanLoader(r.Context())
	if err != nil {
		return nil, &dataset.Error{Err: err}
	}
	rows := uint64(r.Config.Train.MicroBatch)
	counts := c.First.Manifest.Train.Counts
	losses := make([]float32, 0, counts.Documents)
	sum, bytes := 0.0, uint64(0)
	finish := func() {
		bits := math.NaN()
		if bytes > 0 {
			bits = dataset.BitsPerByte(sum, bytes)
		}
		losses = append(losses, float32(bits))
		sum, bytes = 0, 0
	}
	eot := int32(c.First.Manifest.Tokenizer.EOT)
	for first := uint64(0); first < scan.Windows(); first += rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if onProgress != nil {
			onProgress(int64(first)*int64(r.Context()), int64(counts.Tokens))
		}
		batch, nats, err := e.Losses(scan, first)
		if err != nil {
			return nil, err
		}
		for i, target := range batch.Targets {
			if target == dataset.Ignore {
				continue
			}
			sum += nats.Float64(i)
			bytes += uint64(c.TokenBytes[target])
			if target == eot {
				finish()
			}
		}
	}
	return losses, nil
}
