package lab

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"anneal/config"
)

// A Tuning is a search of Values values of a key, in factors of 2 around the configured one, with the first seed.
type Tuning struct {
	Key    string
	Values int // odd
}

// A SearchCost is what a search trained beyond the runs that count anyway: the best value of each variant is one of
// those with its first seed.
type SearchCost struct {
	Runs   int
	Tokens int64
	Share  float64 // of the tokens of all runs
}

// CostOfSearch returns what Tuning cost.
func CostOfSearch(list []Ablated) (c SearchCost) {
	all := int64(0)
	tokens := func(a *Ablated) int64 { return int64(a.Config.Train.Steps) * int64(a.Config.Train.BatchTokens) }
	for i := range list {
		v := &list[i]
		all += int64(len(v.Runs)) * tokens(v)
		for n := range v.Tuned {
			if t := &v.Tuned[n]; t.Value != v.Value {
				c.Runs++
				c.Tokens += tokens(t)
			}
		}
	}
	c.Share = float64(c.Tokens) / float64(all+c.Tokens)
	return c
}

// tune finds for every variant the best of several values, with the first seed, and takes it.
func (o AblateOptions) tune(ctx context.Context, list []Ablated, together int) error {
	if o.Tune.Key == "" {
		return nil
	}
	var trials []Ablated
	for _, v := range list {
		configured, err := numberOf(v.Config, o.Tune.Key)
		if err != nil {
			return err
		}
		for k := range o.Tune.Values {
			t := v
			t.Value = configured * math.Pow(2, float64(k-o.Tune.Values/2))
			t.overrides = append(slices.Clone(v.overrides), fmt.Sprintf("%s=%.6g", o.Tune.Key, t.Value))
			if t.Config, err = o.load(t.overrides); err != nil {
				return err
			}
			t.Runs = make([]Compared, 1)
			trials = append(trials, t)
		}
	}
	err := Together(ctx, len(trials), together, func(ctx context.Context, n int) (err error) {
		t := &trials[n]
		name := fmt.Sprintf("%s, %s=%.4g", t.Name, o.Tune.Key, t.Value)
		t.Runs[0], err = o.train(ctx, name, t.Config, t.directory(n/o.Tune.Values), 0)
		return err
	})
	if err != nil {
		return err
	}
	for i := range list {
		list[i].take(trials[i*o.Tune.Values : (i+1)*o.Tune.Values])
	}
	return nil
}

// take takes the best of several values of a number. If all diverged the configured one stays.
func (a *Ablated) take(trials []Ablated) {
	best := -1
	for n, t := range trials {
		a.Tuned = append(a.Tuned, t)
		if r := t.Runs[0]; !r.Diverged && (best < 0 || r.ValBitsPerByte < trials[best].Runs[0].ValBitsPerByte) {
			best = n
		}
	}
	if best >= 0 {
		a.Config, a.Value, a.AtEdge = trials[best].Config, trials[best].Value, best == 0 || best == len(trials)-1
	}
}

// numberOf is the value of a key that is a positive number.
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
