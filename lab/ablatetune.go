package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"anneal/config"
)

// A Tuning is a search over Values values of a key, in factors of 2 around the configured one. The range is extended
// while the best value is at an edge.
type Tuning struct {
	Key    string
	Values int // odd
	Seeds  int // seeds whose mean decides; at least 1, at most those of the ablation
}

// seeds returns the number of seeds of a search; 0 without a search.
func (t Tuning) seeds() int {
	if t.Key == "" {
		return 0
	}
	return max(t.Seeds, 1)
}

// A SearchCost counts what a search trained beyond the runs that the ablation needs anyway; the runs with the best
// value of each variant are among those.
type SearchCost struct {
	Runs   int
	Tokens int64
	Share  float64 // of the tokens of all runs
}

// CostOfSearch returns the cost of Tuning.
func CostOfSearch(list []Ablated) (c SearchCost) {
	all := int64(0)
	tokens := func(a *Ablated) int64 { return int64(a.Config.Train.Steps) * int64(a.Config.Train.BatchTokens) }
	for i := range list {
		v := &list[i]
		all += int64(len(v.Runs)) * tokens(v)
		for n := range v.Tuned {
			if t := &v.Tuned[n]; t.Value != v.Value {
				c.Runs += len(t.Runs)
				c.Tokens += int64(len(t.Runs)) * tokens(t)
			}
		}
	}
	c.Share = float64(c.Tokens) / float64(all+c.Tokens)
	return c
}

// A valueSearch looks for the best value of a number for one variant, with the first seeds.
type valueSearch struct {
	variant *Ablated
	number  int        // of the variant
	trials  []*Ablated // by value
	further int        // values beyond the edges that may still be tried
}

// tune finds the best of several values for every variant, and uses it. While the best value of a variant is the
// smallest or the largest, it tries one beyond, up to the same number of values again.
func (o AblateOptions) tune(ctx context.Context, list []Ablated, together int) error {
	if o.Tune.Key == "" {
		return nil
	}
	searches := make([]valueSearch, len(list))
	for i := range list {
		s := &searches[i]
		*s = valueSearch{variant: &list[i], number: i, further: o.Tune.Values}
		configured, err := numberOf(list[i].Config, o.Tune.Key)
		for k := 0; k < o.Tune.Values && err == nil; k++ {
			err = s.add(o, configured*math.Pow(2, float64(k-o.Tune.Values/2)))
		}
		if err != nil {
			return err
		}
	}
	for {
		if err := o.try(ctx, searches, together); err != nil {
			return err
		}
		extended := false
		for i := range searches {
			more, err := searches[i].extend(o)
			if err != nil {
				return err
			}
			extended = extended || more
		}
		if !extended {
			return nil
		}
	}
}

// add adds a value to try.
func (s *valueSearch) add(o AblateOptions, value float64) (err error) {
	t := *s.variant
	t.Value = value
	t.overrides = append(slices.Clone(t.overrides), fmt.Sprintf("%s=%.6g", o.Tune.Key, value))
	t.Config, err = o.load(t.overrides)
	t.Runs = nil
	s.trials = append(s.trials, &t)
	slices.SortFunc(s.trials, func(a, b *Ablated) int { return cmp.Compare(a.Value, b.Value) })
	return err
}

// try trains the values that the searches have not trained yet.
func (o AblateOptions) try(ctx context.Context, searches []valueSearch, together int) error {
	type trial struct {
		*Ablated
		placed
		seed int
	}
	var next []trial
	left := 0
	for _, s := range searches {
		for _, t := range s.trials {
			if t.Runs == nil {
				t.Runs = make([]Compared, o.Tune.seeds())
				for seed := range t.Runs {
					at := o.place(t, s.number, seed)
					next = append(next, trial{t, at, seed})
					left += at.left()
				}
			}
		}
	}
	o.pace.more(left)
	return Together(ctx, len(next), together, func(ctx context.Context, n int) (err error) {
		t := next[n]
		name := fmt.Sprintf("%s, %s=%.4g", t.Name, o.Tune.Key, t.Value)
		t.Runs[t.seed], err = o.train(ctx, name, t.placed)
		return err
	})
}

// extend selects the best value so far. If that is at an edge, it adds a value beyond, and reports whether it did.
func (s *valueSearch) extend(o AblateOptions) (more bool, err error) {
	s.variant.take(s.trials)
	if !s.variant.AtEdge || s.further == 0 {
		return false, nil
	}
	s.further--
	beyond := s.variant.Value * 2
	if s.variant.Value == s.trials[0].Value {
		beyond = s.variant.Value / 2
	}
	err = s.add(o, beyond)
	var refused *config.Error
	if errors.As(err, &refused) { // the edge is at a limit of the key's values
		s.trials = slices.DeleteFunc(s.trials, func(t *Ablated) bool { return t.Value == beyond })
		s.further = 0
		return false, nil
	}
	return err == nil, err
}

// take selects the best of several sorted values: the one with the lowest mean among those with which no run diverged.
// If a run diverged with each of them, the configured value stays.
func (a *Ablated) take(trials []*Ablated) {
	best := -1
	a.Tuned = nil
	for n, t := range trials {
		a.Tuned = append(a.Tuned, *t)
		diverged := slices.ContainsFunc(t.Runs, func(r Compared) bool { return r.Diverged })
		if known := !math.IsNaN(t.Mean()); known && !diverged && (best < 0 || t.Mean() < trials[best].Mean()) {
			best = n
		}
	}
	if best >= 0 {
		a.Config, a.Value, a.AtEdge = trials[best].Config, trials[best].Value, best == 0 || best == len(trials)-1
	}
}

// numberOf returns the value of a key whose value is a positive number.
func numberOf(cfg *config.Config, key string) (float64, error) {
	text, err := cfg.Value(key)
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0) {
		return 0, config.Problem{
			Key: key, Message: fmt.Sprintf("%s = %s is no number above 0, so there is nothing to search around",
				key, text),
			Try: "optimizer.lr",
		}
	}
	return x, nil
}
