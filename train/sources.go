package train

import (
	"anneal/dataset"
)

// SourceResult measures how well a model predicts the held-out text of one source of a mix.
type SourceResult struct {
	Name        string `json:"name"`
	Loss        number `json:"loss"` // mean nats per token
	BitsPerByte number `json:"bits_per_byte"`
	Tokens      int64  `json:"tokens"` // targets scored
	Bytes       int64  `json:"bytes"`  // bytes of text that they encode
}

// sourceLoss sums the loss of a step over the rows of one source.
type sourceLoss struct {
	nats    float64
	targets int
}

// manySources is a mix of sources.
type manySources interface {
	At(k uint64) (source int, sample uint64)
	Drawn(samples uint64) []uint64
	Loaders() []*dataset.Loader
}

// addSources adds the losses of the micro-batch with the given first sample to those of the sources of its rows.
func (t *Trainer) addSources(mixed manySources, first uint64) {
	for len(t.sources) < len(mixed.Loaders()) {
		t.sources = append(t.sources, sourceLoss{})
	}
	losses := t.batch.HostLosses(t.dev)
	for r := range t.rows {
		source, _ := mixed.At(first + uint64(r))
		nats, sum := 0.0, &t.sources[source]
		for i, n := r*t.data.Context, (r+1)*t.data.Context; i < n; i++ {
			if t.data.Targets[i] != dataset.Ignore {
				nats += losses.Float64(i)
				sum.targets++
			}
		}
		sum.nats += nats // row by row, whoever computes which of them
	}
}

// sourceLoss returns the loss of each source of a mix in the step's batch; nil without a mix.
func (s *session) sourceLoss() map[string]number {
	if s.corpus.Mixed == nil {
		return nil
	}
	losses := map[string]number{}
	for i, sum := range s.trainer.sources {
		if sum.targets > 0 {
			losses[s.corpus.Sources[i].Name] = number(sum.nats / float64(sum.targets))
		}
	}
	return losses
}

// evaluateSources adds the held-out measure of each source of a mix, and its tokens trained on so far.
func (s *session) evaluateSources(e *Evaluation) {
	if s.corpus.Mixed == nil {
		return
	}
	e.SourceTokens, e.SourceBitsPerByte = s.sourceTokens(), map[string]number{}
	for _, r := range e.ValSources {
		e.SourceBitsPerByte[r.Name] = r.BitsPerByte
	}
}

// sourceTokens returns the tokens that the run has read from each source; nil without a mix.
func (s *session) sourceTokens() map[string]int64 {
	mixed, ok := s.corpus.Train.(manySources)
	if !ok {
		return nil
	}
	tokens := map[string]int64{}
	for i, n := range mixed.Drawn(s.trainer.progress.Sample) {
		tokens[s.corpus.Sources[i].Name] = int64(n) * int64(s.cfg.Model.Context)
	}
	return tokens
}
