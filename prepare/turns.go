package prepare

import (
	"errors"
	"fmt"
	"strings"

	"anneal/dataset"
)

// turns reads the sources of a mix in turn, regardless of their weights: micro-batch i of a run is entirely from
// source i mod k, and the samples of a source come in the source's order.
type turns struct {
	*dataset.Mixed
	rows uint64 // samples in a micro-batch
}

// At returns the source of sample k, and the sample's number within the source.
func (t turns) At(k uint64) (source int, sample uint64) {
	turn, sources := k/t.rows, uint64(len(t.Loaders()))
	return int(turn % sources), turn/sources*t.rows + k%t.rows
}

// Drawn returns the number of the first k samples that come from each source.
func (t turns) Drawn(k uint64) []uint64 {
	counts := make([]uint64, len(t.Loaders()))
	at, next := t.At(k)
	for i := range counts {
		switch {
		case i < at:
			counts[i] = (next/t.rows + 1) * t.rows
		case i == at:
			counts[i] = next
		default:
			counts[i] = next / t.rows * t.rows
		}
	}
	return counts
}

// Batch fills b with a micro-batch: first must be the start of one, and rows its size.
func (t turns) Batch(b *dataset.Batch, first uint64, rows int) error {
	if first%t.rows != 0 || uint64(rows) != t.rows {
		return fmt.Errorf("samples %d to %d are not one micro-batch of %d", first, first+uint64(rows)-1, t.rows)
	}
	source, sample := t.At(first)
	return t.Loaders()[source].Batch(b, sample, rows)
}

// suffix distinguishes the state of turns from that of a mix.
func (t turns) suffix() string { return fmt.Sprintf(" in turns of %d", t.rows) }

// State returns the state after the given number of samples.
func (t turns) State(samples uint64) dataset.State {
	s := t.Mixed.State(samples)
	s.Mix += t.suffix()
	return s
}

// Check returns an error if s was saved with other data, for which its sample counter has another meaning.
func (t turns) Check(s dataset.State) error {
	mix, ok := strings.CutSuffix(s.Mix, t.suffix())
	if !ok {
		return errors.New("the run read its sources with another train.micro_batch than this config has\n" +
			"  restore train.micro_batch, or start a new run")
	}
	s.Mix = mix
	return t.Mixed.Check(s)
}
