package study

import (
	"context"
	"fmt"
	"slices"
)

// A Headline is one of the few main figures of a study.
type Headline struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// share returns a headline for a share, in percent.
func share(name string, value float64) Headline { return Headline{name, 100 * value, "%"} }

// A Spread is a headline over several seeds.
type Spread struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"` // a seed each
}

// Mean returns the mean of the values.
func (s Spread) Mean() float64 {
	sum := 0.0
	for _, x := range s.Values {
		sum += x
	}
	return sum / float64(len(s.Values))
}

// Range returns the smallest and the largest value.
func (s Spread) Range() (least, most float64) { return slices.Min(s.Values), slices.Max(s.Values) }

// Repeat makes a study with each of the seeds, in the directory seed-N of d, and returns the headlines of all. of
// returns the options for a seed. The results of an already finished seed are read from its directory.
func Repeat[O any](ctx context.Context, d *Dir, study string, seeds []int, of func(seed int) O,
	make func(ctx context.Context, d *Dir, o O) (*Report, error)) ([]Spread, error) {
	var list []Spread
	for i, seed := range seeds {
		r, err := one(ctx, d, study, seed, of(seed), make)
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed, err)
		}
		for n, h := range r.Headlines {
			if i == 0 {
				list = append(list, Spread{Name: h.Name, Unit: h.Unit})
			}
			list[n].Values = append(list[n].Values, h.Value)
		}
	}
	return list, nil
}

// one makes the study of a seed.
func one[O any](ctx context.Context, d *Dir, study string, seed int, o O,
	make func(ctx context.Context, d *Dir, o O) (*Report, error)) (*Report, error) {
	under, err := Open(d.File(fmt.Sprintf("seed-%d", seed)), study, o)
	if err != nil {
		return nil, err
	}
	defer under.Close()
	under.Note = d.Note
	return make(ctx, under, o)
}
