package train

import (
	"anneal/dataset"
)

// SourceResult measures how well a model predicts the held-out text of one source of a mix.
type SourceResult struct {
	Name        string `json:"name"`
	Loss        Number `json:"loss"` // mean nats per token
	BitsPerByte Number `json:"bits_per_byte"`
	Tokens      int64  `json:"tokens"` // targets scored
	Bytes       int64  `json:"bytes"`  // bytes of text that the targets encode
}

// sourceLoss sums the loss of a step over the rows of one source.
type sourceLoss struct {
	nats    float64
	targets int
}

// ManySources is a mix of sources.
type ManySources interface {
	At(k uint64) (source int, sample uint64)
	Drawn(samples uint64) []uint64
	Loaders() []*dataset.Loader
}

// rowLosses returns the losses of the rows of the current micro-batch.
func (t *Trainer) rowLosses() []sourceLoss {
	rows, losses := make([]sourceLoss, t.rows), t.batch.HostLosses(t.dev)
	targets := t.batch.Host.Targets // of this rank's tokens of each row
	length := len(targets) / len(rows)
	for r := range rows {
		for i, n := r*length, (r+1)*length; i < n; i++ {
			if targets[i] != dataset.Ignore {
				rows[r].nats += losses.Float64(i)
				rows[r].targets++
			}
		}
	}
	return rows
}

// addSources adds the losses of a micro-batch's rows to the losses of their sources. The first row is sample first.
func (t *Trainer) addSources(mixed ManySources, first uint64, rows []sourceLoss) {
	for len(t.sources) < len(mixed.Loaders()) {
		t.sources = append(t.sources, sourceLoss{})
	}
	for r, row := range rows {
		source, _ := mixed.At(first + uint64(r))
		t.sources[source].nats += row.nats
		t.sources[source].targets += row.targets
	}
}

// SourceLoss returns the mean loss of source i of a mix in the last step; false if the source had no target there.
func (t *Trainer) SourceLoss(i int) (nats float64, ok bool) {
	if i >= len(t.sources) || t.sources[i].targets == 0 {
		return 0, false
	}
	return t.sources[i].nats / float64(t.sources[i].targets), true
}
