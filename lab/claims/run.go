package claims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"anneal/config"
	"anneal/internal/fileio"
	"anneal/lab/study"
)

// ResultsFile is the file of the figures, in the directory of a measurement.
const ResultsFile = "claims.json"

// mostResults is the size of a file of figures, in bytes, that is read.
const mostResults = 8 << 20

// Options say what to measure.
type Options struct {
	Dir    string
	Claims []Claim

	OnClaim func(c Claim, i, n int) // called before a claim is measured
}

// Results are figures of claims, measured on one machine.
type Results struct {
	Machine study.Machine `json:"machine"`
	Claims  []Result      `json:"results"` // by number
}

// A Result holds the figures of a claim.
type Result struct {
	Claim   int      `json:"claim"`
	Date    string   `json:"date"`    // YYYY-MM-DD
	Seconds float64  `json:"seconds"` // that measuring took
	Figures []Figure `json:"figures"`
}

// Find returns the result of a claim, or nil if there is none.
func (r *Results) Find(number int) *Result {
	i := slices.IndexFunc(r.Claims, func(x Result) bool { return x.Claim == number })
	if i < 0 {
		return nil
	}
	return &r.Claims[i]
}

// Read parses a file of figures.
func Read(text []byte) (*Results, error) {
	var r Results
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// Run measures the claims of o that have no figures in o.Dir yet, and stores each result there as soon as it is known.
// If a claim cannot be measured, the others are still measured: the errors of all are returned at the end, together
// with the results.
func Run(ctx context.Context, o Options) (*Results, error) {
	here, err := study.ThisMachine()
	if err != nil {
		return nil, err
	}
	dir, err := study.Open(o.Dir, "claims", here)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all, err := readResults(dir.File(ResultsFile))
	if err != nil {
		return nil, err
	}
	all.Machine = here
	env := &Env{dir: dir}
	var failed []error
	for i, c := range o.Claims {
		if all.Find(c.Number) != nil {
			continue
		}
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		o.OnClaim(c, i, len(o.Claims))
		begin := time.Now()
		figures, err := c.Measure(ctx, env)
		if err == nil {
			err = check(figures)
		}
		switch {
		case ctx.Err() != nil:
			return all, context.Cause(ctx)
		case err != nil:
			failed = append(failed, fmt.Errorf("claim %d: %w", c.Number, err))
			continue
		}
		all.add(Result{c.Number, begin.UTC().Format(time.DateOnly), time.Since(begin).Seconds(), figures})
		if err := study.WriteResults(dir.File(ResultsFile), all); err != nil {
			return all, err
		}
	}
	return all, errors.Join(failed...)
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
			Message: fmt.Sprintf("%s is not a file of measured claims: %v", path, err), Try: "another --out",
		}
	}
	r.dropOthers()
	return r, nil
}

// dropOthers drops figures of other versions of a claim, which its rule cannot judge, so that they are measured again.
func (r *Results) dropOthers() {
	for _, c := range All() {
		if x := r.Find(c.Number); x != nil {
			if _, err := c.Verdict(x.Figures); err != nil {
				r.Claims = slices.DeleteFunc(r.Claims, func(x Result) bool { return x.Claim == c.Number })
			}
		}
	}
}

func (r *Results) add(x Result) {
	r.Claims = append(r.Claims, x)
	slices.SortFunc(r.Claims, func(a, b Result) int { return a.Claim - b.Claim })
}
