package techniques

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/lab"
	"anneal/lab/study"
	"anneal/prepare"
	"anneal/run"
	"anneal/train"
)

// ResultsFile is the file of the figures, in the directory of a measurement.
const ResultsFile = "techniques.json"

const (
	mostResults = 8 << 20 // bytes of a file of figures that are read
	rateSeeds   = 2       // seeds whose mean decides a rate
	rates       = 3       // values tried for every run, and up to as many beyond while the best is at an edge
)

// Options say what to measure.
type Options struct {
	Dir    string
	Groups []Group
	Seeds  int // runs of each technique

	OnStage func(text string)                    // called when a group or a run begins, from several goroutines
	OnText  func(name string, done, total int64) // called while the data set is made
}

// Results are figures of techniques. Groups may have been measured on different machines: each is compared within
// itself.
type Results struct {
	Groups []Measured `json:"groups"` // in the order of Groups
}

// Measured holds the figures of a group.
type Measured struct {
	Group   string        `json:"group"`
	Machine study.Machine `json:"machine"`
	Date    string        `json:"date"`       // YYYY-MM-DD
	Seconds float64       `json:"seconds"`    // that training took
	Seeds   int           `json:"rate_seeds"` // by whose mean each rate was chosen
	Rows    []Figure      `json:"rows"`       // the run without any technique comes first
}

// A Figure holds the measurements of a technique.
type Figure struct {
	Name   string     `json:"name"`
	Set    []string   `json:"set"`
	Rate   float64    `json:"rate"`          // the best that was tried, with the first seed
	AtEdge bool       `json:"at_edge"`       // it is the smallest or the largest that was tried
	Bits   []*float64 `json:"bits_per_byte"` // of held-out text, for each seed; null if the run diverged
}

// Find returns the figures of a group, or nil.
func (r *Results) Find(group string) *Measured {
	i := slices.IndexFunc(r.Groups, func(m Measured) bool { return m.Group == group })
	if i < 0 {
		return nil
	}
	return &r.Groups[i]
}

// Run measures the groups of o that have no figures in o.Dir yet, and stores the figures of each group as soon as they
// are known. A group whose rows have changed is measured again, but its existing runs are not trained again. It
// returns nil if ctx ended.
func Run(ctx context.Context, o Options) (*Results, error) {
	here, err := study.ThisMachine()
	if err != nil {
		return nil, err
	}
	dir, err := study.Open(o.Dir, "techniques", map[string]any{
		"seeds": o.Seeds, "rate_seeds": o.rateSeeds(), "tier": here.Tier,
	})
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all, err := readResults(dir.File(ResultsFile))
	if err != nil {
		return nil, err
	}
	for _, g := range o.Groups {
		if m := all.Find(g.Name); m != nil && m.measures(g) {
			continue
		}
		data, err := o.source(ctx, dir)
		if err != nil {
			return nil, err
		}
		o.OnStage(fmt.Sprintf("%s: %d techniques", g.Title, len(g.Rows)))
		begin := time.Now()
		list, err := lab.Ablate(ctx, o.ablation(g, dir.File(g.Name), data))
		if err != nil || list == nil {
			return nil, err
		}
		all.add(Measured{
			Group: g.Name, Machine: here, Date: begin.UTC().Format(time.DateOnly),
			Seconds: time.Since(begin).Seconds(), Seeds: o.rateSeeds(), Rows: figures(g, list),
		})
		if err := study.WriteResults(dir.File(ResultsFile), all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// source returns the directory of a data set of the source of the Go standard library, as `anneal data sample` makes
// it.
func (o Options) source(ctx context.Context, d *study.Dir) (string, error) {
	dir := d.File("source")
	if dataset.Exists(dir) {
		return dir, nil
	}
	_, err := prepare.SampleData(ctx, prepare.SampleOptions{Dir: dir, OnStage: o.OnStage, OnText: o.OnText})
	return dir, err
}

// rateSeeds returns how many seeds decide a rate.
func (o Options) rateSeeds() int { return min(rateSeeds, o.Seeds) }

// ablation returns the ablation of a group.
func (o Options) ablation(g Group, out, data string) lab.AblateOptions {
	a := lab.AblateOptions{
		Overrides: slices.Concat([]string{"data.path=" + data}, base, g.Base),

		Out: out, Seeds: o.Seeds, Equal: lab.EqualTokens,
		Tune:  lab.Tuning{Key: "optimizer.lr", Values: rates, Seeds: o.rateSeeds()},
		OnRun: o.OnStage, OnProgress: func(train.Event) {},
	}
	for _, r := range g.Rows {
		a.Variants = append(a.Variants, r.Set)
	}
	return a
}

// figures returns the figures of an ablation of a group.
func figures(g Group, list []lab.Ablated) (rows []Figure) {
	for i, v := range list {
		f := Figure{Name: v.Name, Set: g.Base, Rate: v.Value, AtEdge: v.AtEdge}
		if i > 0 {
			f.Name, f.Set = g.Rows[i-1].Name, g.Rows[i-1].Set
		}
		for _, r := range v.Runs {
			var bits *float64
			if !r.Diverged {
				bits = &r.ValBitsPerByte
			}
			f.Bits = append(f.Bits, bits)
		}
		rows = append(rows, f)
	}
	return rows
}

// measures reports whether m has figures of all techniques of a group.
func (m *Measured) measures(g Group) bool {
	return slices.EqualFunc(m.Rows, append([]Row{{Set: g.Base}}, g.Rows...),
		func(f Figure, r Row) bool { return slices.Equal(f.Set, r.Set) })
}

// Judge returns the group's runs with their mean and the verdict of each against the first.
func (m *Measured) Judge() []lab.Ablated {
	var list []lab.Ablated
	for _, f := range m.Rows {
		a := lab.Ablated{Name: f.Name, Value: f.Rate, AtEdge: f.AtEdge}
		for _, bits := range f.Bits {
			c := lab.Compared{Result: &run.Result{}, Diverged: bits == nil, Change: math.NaN()}
			if bits != nil {
				c.ValBitsPerByte = *bits
			}
			a.Runs = append(a.Runs, c)
		}
		list = append(list, a)
	}
	lab.Compare(list)
	return list
}

// Read parses a file of figures.
func Read(text []byte) (*Results, error) {
	var r Results
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	for _, m := range r.Groups {
		if len(m.Rows) == 0 {
			return nil, fmt.Errorf("the group %q has no rows", m.Group)
		}
		for _, f := range m.Rows {
			if len(f.Bits) != len(m.Rows[0].Bits) {
				return nil, fmt.Errorf("%s, %s: %d runs, the first has %d", m.Group, f.Name, len(f.Bits),
					len(m.Rows[0].Bits))
			}
		}
	}
	return &r, nil
}

func readResults(path string) (*Results, error) {
	text, err := fileio.ReadSmall(path, mostResults)
	if errors.Is(err, fs.ErrNotExist) {
		return &Results{}, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := Read(text)
	if err != nil {
		return nil, config.Problem{
			Message: fmt.Sprintf("%s is not a file of measured techniques: %v", path, err), Try: "another --out",
		}
	}
	return r, nil
}

// add adds a group, or replaces its older figures.
func (r *Results) add(m Measured) {
	if old := r.Find(m.Group); old != nil {
		*old = m
		return
	}
	r.Groups = append(r.Groups, m)
	place := func(m Measured) int {
		return slices.IndexFunc(Groups(), func(g Group) bool { return g.Name == m.Group })
	}
	slices.SortStableFunc(r.Groups, func(a, b Measured) int { return place(a) - place(b) })
}
