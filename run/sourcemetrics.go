package run

import (
	"anneal/train"
)

// sourceLoss returns the loss of each source of a mix in the step's batch; nil without a mix.
func (s *session) sourceLoss() map[string]train.Number {
	if s.corpus.Mixed == nil {
		return nil
	}
	losses := map[string]train.Number{}
	for i, source := range s.corpus.Sources {
		if nats, ok := s.trainer.SourceLoss(i); ok {
			losses[source.Name] = train.Number(nats)
		}
	}
	return losses
}

// evaluateSources adds the held-out measure of each source of a mix, and its tokens trained on so far.
func (s *session) evaluateSources(e *train.Evaluation) {
	if s.corpus.Mixed == nil {
		return
	}
	e.SourceTokens, e.SourceBitsPerByte = s.sourceTokens(), map[string]train.Number{}
	for _, r := range e.ValSources {
		e.SourceBitsPerByte[r.Name] = r.BitsPerByte
	}
}

// sourceTokens returns the tokens that the run has read from each source; nil without a mix.
func (s *session) sourceTokens() map[string]int64 {
	mixed, ok := s.corpus.Train.(train.ManySources)
	if !ok {
		return nil
	}
	tokens := map[string]int64{}
	for i, n := range mixed.Drawn(s.trainer.Position().Sample) {
		tokens[s.corpus.Sources[i].Name] = int64(n) * int64(s.cfg.Model.Context)
	}
	return tokens
}
