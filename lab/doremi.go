package lab

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"anneal/chart"
	"anneal/config"
	"anneal/run"
	"anneal/train"
)

// DoReMiOptions are the options of DoReMi.
type DoReMiOptions struct {
	MixtureOptions
	Rate      float64 // η of train.GroupDRO
	Smoothing float64 // c of train.GroupDRO
	Rounds    int     // limit on the rounds; each trains its reference on the weights found by the previous one
}

// DoReMiResult is the result of DoReMi.
type DoReMiResult struct {
	Mixture
	Rounds []DoReMiRound `json:"rounds"`
}

// DoReMiRound is one round: a reference and a proxy.
type DoReMiRound struct {
	Reference []float64   `json:"reference_weights"`
	Weights   []float64   `json:"weights"` // the mean over the steps
	Moved     float64     `json:"moved"`   // the largest change of a weight from Reference
	Curve     [][]float64 `json:"-"`       // [step][source]
}

// settled is the largest change of a weight in a round at which the search ends.
const settled = 1e-3

// DoReMi finds the weights of a mixture with two small models (Xie et al. 2023, arXiv 2305.10429). A reference is
// trained on the natural mixture. A proxy of the same size is trained by group DRO (train.GroupDRO), which gives more
// weight to the sources where the proxy is worst relative to the reference. The result is the average of the proxy's
// weights over its steps. Neither model is needed afterwards.
//
// The search takes 8/3 of the time of one training of the small model. Both models are runs in o.Out with the number
// of steps of the configuration; a search that was stopped resumes from the last checkpoint. The weights depend on
// the tokenizer and on the reference. With more than one round, the next reference is trained on the weights found,
// until they no longer change.
//
// Do not use DoReMi if a source is noise or far too small for the run: text that the reference has memorised looks as
// if it could be learned.
func DoReMi(ctx context.Context, o DoReMiOptions) (*DoReMiResult, error) {
	if o.Rounds < 1 {
		return nil, config.Problem{
			Message: fmt.Sprintf("a search needs at least one round, not %d", o.Rounds), Try: "1",
		}
	}
	s, err := newSearch(o.MixtureOptions)
	if err != nil {
		return nil, err
	}
	defer s.unlock()
	if err := (train.GroupDRO{Rate: o.Rate, Smoothing: o.Smoothing}).Check(s.cfg); err != nil {
		return nil, err // fails before the reference is trained
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

// round runs search number n, with a reference trained on these weights.
func (s *search) round(ctx context.Context, o DoReMiOptions, n int, weights []float64) (r DoReMiRound, err error) {
	r.Reference = weights
	cfg, err := s.with(weights)
	if err != nil {
		return r, err
	}
	reference, proxy := filepath.Join(s.Out, fmt.Sprintf("reference-%d", n)),
		filepath.Join(s.Out, fmt.Sprintf("proxy-%d", n))
	s.OnPhase(fmt.Sprintf("round %d: reference with weights %s", n, s.shares(weights)))
	if _, err := s.train(ctx, reference, cfg, nil); err != nil {
		return r, err
	}
	if cfg, err = s.shared(); err != nil {
		return r, err
	}
	s.OnPhase(fmt.Sprintf("round %d: proxy", n))
	result, err := s.train(ctx, proxy, cfg, &run.DRO{
		Reference: reference, GroupDRO: train.GroupDRO{Rate: o.Rate, Smoothing: o.Smoothing},
	})
	if err != nil {
		return r, err
	}
	r.Weights = result.DomainWeights
	for i, w := range r.Weights {
		r.Moved = max(r.Moved, math.Abs(w-weights[i]))
	}
	r.Curve, err = run.DomainWeights(proxy, s.OnPhase)
	return r, err
}

// shared returns a configuration for the whole run whose steps have the same number of rows from every source. Each
// micro-batch has rows of one source.
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
	c.Derive("train.batch_tokens", k*rows*context,
		"equal numbers of rows from each source, at least the reference's batch")
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
		c.Marks = append(c.Marks, chart.Mark{
			Name: fmt.Sprintf("%s: %.3f", s.Name, s.Weight), X: float64(len(curve)), Y: s.Weight,
		})
	}
	return c
}
