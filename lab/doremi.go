package lab

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"anneal/chart"
	"anneal/train"
	"anneal/train/config"
)

// DoReMiOptions says how DoReMi searches.
type DoReMiOptions struct {
	MixtureOptions
	Rate      float64 // η of train.GroupDRO
	Smoothing float64 // c
	Rounds    int     // at most so many searches, each with a reference trained on what the one before has found
}

// DoReMiResult is what a search found.
type DoReMiResult struct {
	Mixture
	Rounds []DoReMiRound `json:"rounds"`
}

// DoReMiRound is one search.
type DoReMiRound struct {
	Reference []float64   `json:"reference_weights"`
	Weights   []float64   `json:"weights"` // the mean over the steps
	Moved     float64     `json:"moved"`   // the largest change of a weight from Reference
	Curve     [][]float64 `json:"-"`       // [step][source]
}

// settled is how little weights may move in a round for the search to be at its end.
const settled = 1e-3

// DoReMi finds the weights of a mixture with two small models (Xie et al. 2023, arXiv 2305.10429): a reference, trained on the natural
// mixture, and a proxy of the same size, trained by group DRO (train.GroupDRO) to come close to the reference wherever it lags behind
// most. The weights that the proxy had, on average over its steps, are the outcome. Neither model is needed afterwards.
//
// It takes 8/3 of the time of one training of the small model; both are runs in o.Out, as long as the configuration says, and when
// the search is stopped and called again, it goes on from the last checkpoint. Weights depend on the tokenizer and on the reference: with
// rounds above 1 the next reference is trained on what was found, until weights stay. Not for sources of which one is noise or far too small
// for the run: what a reference has learned by heart looks as if it could be learned.
func DoReMi(ctx context.Context, o DoReMiOptions) (*DoReMiResult, error) {
	if o.Rounds < 1 {
		return nil, config.Problem{Message: fmt.Sprintf("a search needs at least one round, not %d", o.Rounds), Try: "1"}
	}
	s, err := newSearch(o.MixtureOptions)
	if err != nil {
		return nil, err
	}
	defer s.unlock()
	if err := (train.GroupDRO{Rate: o.Rate, Smoothing: o.Smoothing}).Check(s.cfg); err != nil {
		return nil, err // before the reference is trained
	}
	r := &DoReMiResult{}
	weights := s.weights
	for len(r.Rounds) < o.Rounds {
		round, err := s.round(ctx, o, len(r.Rounds)+1, weights)
		if err != nil {
			return nil, err
		}
		r.Rounds = append(r.Rounds, round)
		if weights = round.Weights; round.Moved < settled {
			break
		}
	}
	m, err := s.found("doremi", weights)
	if err != nil {
		return nil, err
	}
	r.Mixture = *m
	return r, nil
}

// round makes search number n, with a reference trained on these weights.
func (s *search) round(ctx context.Context, o DoReMiOptions, n int, weights []float64) (r DoReMiRound, err error) {
	r.Reference = weights
	cfg, err := s.with(weights)
	if err != nil {
		return r, err
	}
	reference, proxy := filepath.Join(s.Out, fmt.Sprintf("reference-%d", n)), filepath.Join(s.Out, fmt.Sprintf("proxy-%d", n))
	s.OnPhase(fmt.Sprintf("round %d: reference with weights %s", n, s.shares(weights)))
	if _, err := s.train(ctx, reference, cfg, nil); err != nil {
		return r, err
	}
	if cfg, err = s.shared(); err != nil {
		return r, err
	}
	s.OnPhase(fmt.Sprintf("round %d: proxy", n))
	result, err := s.train(ctx, proxy, cfg, &train.GroupDRO{Reference: reference, Rate: o.Rate, Smoothing: o.Smoothing})
	if err != nil {
		return r, err
	}
	r.Weights = result.DomainWeights
	for i, w := range r.Weights {
		r.Moved = max(r.Moved, math.Abs(w-weights[i]))
	}
	r.Curve, err = train.DomainWeights(proxy)
	return r, err
}

// shared is a configuration whose steps have as many rows of every source, in micro-batches of one source each, all through the run.
func (s *search) shared() (*config.Config, error) {
	even := make([]float64, len(s.sources))
	for i := range even {
		even[i] = 1
	}
	c, err := s.with(even)
	if err != nil {
		return nil, err
	}
	k, context := len(s.sources), c.Model.Context
	rows := (c.Train.BatchTokens/context + k - 1) / k // of each source
	micro := min(c.Train.MicroBatch, rows)
	for rows%micro != 0 {
		micro--
	}
	c.Derive("train.batch_tokens", k*rows*context, "equal numbers of rows from each source, at least the reference's batch")
	c.Derive("train.micro_batch", micro, "rows of one source")
	return c, nil
}

// Chart draws the weights over the steps of the last round.
func (r *DoReMiResult) Chart() *chart.Chart {
	curve := r.Rounds[len(r.Rounds)-1].Curve
	c := &chart.Chart{
		Title: "DoReMi: domain weights during the proxy's training, and their means",
		X:     chart.Axis{Label: "step"}, Y: chart.Axis{Label: "weight", Min: 0, Max: 1},
	}
	for i, s := range r.Sources {
		line := chart.Series{Name: s.Name}
		for step, alpha := range curve {
			line.X, line.Y = append(line.X, float64(step+1)), append(line.Y, alpha[i])
		}
		c.Series = append(c.Series, line)
		c.Marks = append(c.Marks, chart.Mark{Name: fmt.Sprintf("%s: %.3f", s.Name, s.Weight), X: float64(len(curve)), Y: s.Weight})
	}
	return c
}
