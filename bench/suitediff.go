package bench

import (
	"anneal/internal/units"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// A Change is a figure that two suites have.
type Change struct {
	Name   string  `json:"name"`
	Before Figure  `json:"before"`
	After  Figure  `json:"after"`
	Ratio  float64 `json:"ratio"` // share after over share before: below 1 is slower
}

// Comparison holds the changes between two suites.
type Comparison struct {
	Changes []Change `json:"changes"` // the largest slowdown first
	Missing []string `json:"missing"` // figures that only the first has
	New     []string `json:"new"`     // figures that only the second has
	Median  float64  `json:"median_ratio"`
}

// ReadSuite reads a file that `bench all --out` has written.
func ReadSuite(path string) (*Suite, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := new(Suite)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s is not a result of `anneal bench all`: %w", path, err)
	}
	if len(s.Figures) == 0 {
		return nil, fmt.Errorf("%s is not a result of `anneal bench all`: it has no figures", path)
	}
	for _, f := range s.Figures {
		if !(f.Share > 0) || !(f.Value > 0) {
			return nil, fmt.Errorf("%s: %s has the value %v and the share %v; both must be above 0",
				path, f.Name, f.Value, f.Share)
		}
	}
	return s, nil
}

// Compare compares figures by their shares, which do not depend on the machine or on its speed at the time of
// measurement.
func Compare(before, after *Suite) *Comparison {
	was := map[string]Figure{}
	for _, f := range before.Figures {
		was[f.Name] = f
	}
	c := &Comparison{Changes: []Change{}, Missing: []string{}, New: []string{}}
	for _, f := range after.Figures {
		old, ok := was[f.Name]
		if !ok {
			c.New = append(c.New, f.Name)
			continue
		}
		delete(was, f.Name)
		c.Changes = append(c.Changes, Change{f.Name, old, f, f.Share / old.Share})
	}
	for _, f := range before.Figures {
		if _, ok := was[f.Name]; ok {
			c.Missing = append(c.Missing, f.Name)
		}
	}
	slices.SortStableFunc(c.Changes, func(a, b Change) int { return cmp.Compare(a.Ratio, b.Ratio) })
	if n := len(c.Changes); n > 0 {
		c.Median = c.Changes[n/2].Ratio
	}
	return c
}

// SlowerError lists the figures that fell by more than allowed.
type SlowerError struct {
	Changes []Change
	Allowed float64 // as a fraction
}

func (e *SlowerError) Error() string {
	worst := e.Changes[0]
	return fmt.Sprintf("%s fell by more than %.0f %%; the largest fall is %s, by %.0f %%",
		units.Count(len(e.Changes), "figure"), 100*e.Allowed, worst.Name, 100*(1-worst.Ratio))
}

// Check returns a *SlowerError if a share fell by more than a fraction of its earlier value.
func (c *Comparison) Check(allowed float64) error {
	n := 0
	for n < len(c.Changes) && c.Changes[n].Ratio < 1-allowed {
		n++
	}
	if n == 0 {
		return nil
	}
	return &SlowerError{c.Changes[:n], allowed}
}
