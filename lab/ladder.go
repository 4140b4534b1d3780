package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/internal/jsonlimit"
	"anneal/run"
	"anneal/train"
)

// LadderOptions are the options of TrainLadder.
type LadderOptions struct {
	Overrides []string // section.key=value for every run; they name the data
	Out       string   // directory; a study that is already there is resumed
	Budget    time.Duration
	Threads   int // overrides the configuration's if above 0

	OnPhase    func(what string)
	OnProgress func(train.Event)
}

// A Ladder is a study of scaling: models of several sizes, each trained for several lengths. Its file, ladder.json,
// holds everything that a resumed study needs.
type Ladder struct {
	Overrides []string           `json:"overrides"`
	Budget    float64            `json:"budget_seconds"`
	Data      []string           `json:"data"` // fingerprints of the data sets
	Rungs     []Rung             `json:"rungs"`
	Losses    map[string]float64 `json:"losses"` // of finished runs, by name: nats per token of held-out text
}

// A Rung is a size of a ladder. Its trunk is a WSD run of eight units. Shorter runs of one, two and four units branch
// off at the beginning of their decay, so a rung costs 1.175 times its longest run.
type Rung struct {
	Layers          int     `json:"layers"`
	Dim             int     `json:"dim"`
	Heads           int     `json:"heads"`
	LR              float64 `json:"lr"`
	Ranks           int     `json:"ranks"`  // threads that share the sequences of a step
	Params          float64 `json:"params"` // of matrix products: with the head, without the lookup embedding
	FLOPsPerToken   float64 `json:"flops_per_token"`
	TokensPerSecond float64 `json:"tokens_per_second"` // measured before the study
	BatchTokens     int     `json:"batch_tokens"`
	Unit            int     `json:"unit_steps"`
	Unique          float64 `json:"unique_tokens"` // in the data set
}

// lengths lists the lengths of a rung's runs in units, the trunk first.
var lengths = []int{8, 1, 2, 4}

// decayed is the share of a run in which the rate decays.
const decayed = 0.2

// trunkCost is the cost of a rung in trunks; branches train only their decay.
const trunkCost = 1 + decayed*(1+2+4)/8

// LadderFile and PointsFile are files of a study.
const (
	LadderFile = "ladder.json"
	PointsFile = "points.csv"
)

// PlanLadder measures the speeds of models and returns the ladder that TrainLadder would train: that of o.Out, if a
// study is there. It writes nothing.
func PlanLadder(ctx context.Context, o LadderOptions) (*Ladder, error) {
	if err := o.checkOverrides(); err != nil {
		return nil, err
	}
	return o.open(ctx)
}

// TrainLadder trains a ladder of small models in a budget of time, and writes their losses to o.Out/points.csv,
// one line for each run that has ended, for scaling.FitPoints. It measures the speed of each size first.
// If ctx ends, all is saved, and a later call with the same options continues.
func TrainLadder(ctx context.Context, o LadderOptions) (*Ladder, error) {
	if err := run.CheckForRuns(o.Out); err != nil {
		return nil, err
	}
	if err := o.checkOverrides(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Out, 0o777); err != nil {
		return nil, err
	}
	unlock, err := checkpoint.Lock(o.Out)
	if err != nil {
		return nil, err
	}
	defer unlock()
	l, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.write(o.Out); err != nil {
		return nil, err
	}
	for i, r := range l.Rungs {
		for j, units := range lengths {
			name := r.name(units)
			if _, done := l.Losses[name]; done {
				continue
			}
			o.OnPhase(fmt.Sprintf("run %d of %d: %s, %.2fM parameters, %.1fM tokens, ETA of all runs %v",
				i*len(lengths)+j+1, len(l.Rungs)*len(lengths), name, r.Params/1e6, r.tokens(units)/1e6,
				time.Duration(math.Ceil(l.Left()))*time.Second))
			loss, err := o.train(ctx, r, units)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			l.Losses[name] = loss
			if err := l.write(o.Out); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// open reads the study in o.Out, or plans it if there is none.
func (o LadderOptions) open(ctx context.Context) (*Ladder, error) {
	err := error(fs.ErrNotExist)
	var l *Ladder
	if o.Out != "" {
		l, err = readLadder(filepath.Join(o.Out, LadderFile))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o.plan(ctx)
	case err != nil:
		return nil, err
	case !slices.Equal(l.Overrides, o.Overrides) || l.Budget != o.Budget.Seconds():
		return nil, config.Problem{
			Message: fmt.Sprintf("%s is another study: %s with a budget of %v", o.Out, strings.Join(l.Overrides, " "),
				time.Duration(l.Budget*float64(time.Second))),
			Try: "the same values to resume it, or another --out",
		}
	}
	cfg, err := o.config(l.Rungs[0], lengths[0])
	if err != nil {
		return nil, err
	}
	if err := l.checkData(cfg); err != nil {
		return nil, err
	}
	o.OnPhase(fmt.Sprintf("%s exists and is resumed: %d of %d runs have ended, the others need %v of training if "+
		"none has begun",
		o.Out, len(l.Losses), len(l.Rungs)*len(lengths),
		time.Duration(math.Ceil(l.Left()))*time.Second))
	return l, nil
}

// name returns the name of a run of a rung, and of its directory.
func (r Rung) name(units int) string { return fmt.Sprintf("dim%d-x%d", r.Dim, units) }

// Seconds predicts the time of a rung's runs, without evaluations.
func (r Rung) Seconds() float64 { return trunkCost * r.tokens(lengths[0]) / r.TokensPerSecond }

// Left predicts the seconds of steps of the unfinished runs, as if none of them had begun.
func (l *Ladder) Left() (seconds float64) {
	for _, r := range l.Rungs {
		for _, units := range lengths {
			if _, done := l.Losses[r.name(units)]; done {
				continue
			}
			trained := r.tokens(units)
			if units != lengths[0] {
				trained *= decayed
			}
			seconds += trained / r.TokensPerSecond
		}
	}
	return seconds
}

// Tokens returns how many tokens the runs of a rung train on, shortest first.
func (r Rung) Tokens() (list []float64) {
	for _, units := range lengths {
		list = append(list, r.tokens(units))
	}
	slices.Sort(list)
	return list
}

// tokens returns how many tokens a run of a rung trains on.
func (r Rung) tokens(units int) float64 {
	return float64(units) * float64(r.Unit) * float64(r.BatchTokens)
}

// train makes or finishes a run of a rung, and returns its loss on held-out text.
func (o LadderOptions) train(ctx context.Context, r Rung, units int) (float64, error) {
	dir := filepath.Join(o.Out, r.name(units))
	cfg, err := o.config(r, units)
	if err != nil {
		return 0, err
	}
	ro := run.Options{Config: cfg, Dir: dir, Threads: o.Threads, OnProgress: o.OnProgress}
	var result *run.Result
	switch trunk := filepath.Join(o.Out, r.name(lengths[0])); {
	case run.Exists(dir) || units == lengths[0]:
		result, err = Finish(ctx, ro)
	default:
		var step int
		if step, err = run.BranchPoint(trunk, cfg); err == nil {
			result, err = run.Branch(ctx, ro, trunk, step)
		}
	}
	switch {
	case err != nil:
		return 0, err
	case result.Interrupted:
		return 0, ctx.Err()
	case math.IsNaN(result.ValLoss):
		return 0, noHeldOut(cfg.Data.Path)
	}
	return result.ValLoss, nil
}

// ladderMost limits the size of a ladder's file with its losses.
var ladderMost = jsonlimit.Limits{Objects: 1000, Values: 10_000}

func readLadder(path string) (*Ladder, error) {
	text, err := fileio.ReadSmall(path, 1<<20)
	if err != nil {
		return nil, err
	}
	var l Ladder
	if err = ladderMost.Check(text); err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err == nil && len(l.Rungs) == 0 {
		err = errors.New("it has no sizes")
	}
	if err != nil {
		return nil, &dataset.Error{Err: fmt.Errorf("%s is not that of a study: %w", path, err)}
	}
	if l.Losses == nil {
		l.Losses = map[string]float64{}
	}
	return &l, nil
}

// write writes the ladder and its points.
func (l *Ladder) write(dir string) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	points := "name,params,tokens,loss,flops,unique_tokens\n"
	for _, r := range l.Rungs {
		for _, units := range lengths {
			if loss, done := l.Losses[r.name(units)]; done {
				tokens := r.tokens(units)
				points += fmt.Sprintf("%s,%.0f,%.0f,%.6f,%.6g,%.0f\n",
					r.name(units), r.Params, tokens, loss, r.FLOPsPerToken*tokens, min(tokens, r.Unique))
			}
		}
	}
	for name, content := range map[string]string{LadderFile: string(text) + "\n", PointsFile: points} {
		err := fileio.Write(filepath.Join(dir, name), func(w io.Writer) error {
			_, err := io.WriteString(w, content)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
