package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"anneal/config"
	"anneal/model"
	"anneal/plan"
	"anneal/plan/cluster"
	"anneal/precision"
	"anneal/program"
	"anneal/run"
)

// onThis is the name of this machine as a cluster.
const onThis = "this"

// load reads a config of this program, or one of its recipes.
func (c planCmd) load(s *session) (*config.Config, error) {
	t := trainCmd{Config: c.Config, Overrides: c.Overrides, Recipe: c.Recipe, DryRun: true}
	if file, _ := fileAndKeys(c.Config, c.Overrides); file == "" && c.Recipe == "" {
		return nil, &usageError{"plan needs a config or --recipe", "try `anneal plan --help`"}
	}
	if err := s.pretend(&t.rankFlags); err != nil {
		return nil, err
	}
	from, err := t.sources(s)
	if err != nil {
		return nil, err
	}
	return run.LoadConfig(from)
}

// model returns the model to plan for a cluster: a well-known one, or that of a config.
func (c planCmd) model(s *session) (cluster.Recipe, error) {
	if file, overrides := fileAndKeys(c.Config, c.Overrides); c.Recipe != "" && file == "" {
		own := config.Recipes()
		r, err := cluster.LookupRecipe(c.Recipe, own...)
		keys := slices.Contains(own, c.Recipe)
		switch {
		case err == nil && !keys && len(overrides) > 0:
			return r, fmt.Errorf("%s is a published shape without a config: %s cannot change it",
				c.Recipe, overrides[0])
		case err == nil && len(overrides) == 0, !keys:
			return r, err
		}
	}
	_, overrides := fileAndKeys(c.Config, c.Overrides)
	if err := checkKeys(overrides); err != nil {
		return cluster.Recipe{}, err
	}
	cfg, err := c.load(s)
	if err != nil {
		return cluster.Recipe{}, err
	}
	r := cluster.Recipe{Batch: cfg.Train.BatchTokens / cfg.Model.Context, Tokens: float64(cfg.Tokens())}
	if c.Context != nil && *c.Context > 0 { // a step keeps its sequences, and attention may see another share of them
		c.Overrides = append(slices.Clone(c.Overrides), fmt.Sprint("model.context=", *c.Context),
			fmt.Sprint("train.batch_tokens=", *c.Context*r.Batch))
		if cfg, err = c.load(s); err != nil {
			return r, err
		}
	}
	decoder, err := outline(cfg)
	if err != nil {
		return r, err
	}
	name := c.Recipe
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(c.Config), filepath.Ext(c.Config))
	}
	shape, remark := cluster.FromModel(cmp.Or(name, "model"), decoder)
	if remark != "" {
		s.notef("%s", remark)
	}
	for _, text := range c.uncounted(cfg) {
		s.notef("%s", text)
	}
	r.Shape = shape
	return r, nil
}

// outline returns the model of a config, whose data give the vocabulary.
func outline(cfg *config.Config) (*model.Decoder, error) {
	if _, err := plan.Outline(cfg); err != nil {
		return nil, err
	}
	policy, err := precision.Lookup(cfg.Precision)
	if err != nil {
		return nil, err
	}
	return model.Outline(cfg.Model, policy), nil
}

// here plans a run on this machine, as `anneal train --dry-run` does.
func (c planCmd) here(s *session) error {
	if c.Search || c.Mesh != "" || c.SVG != "" || c.Timeline != "" || c.Zero != nil || c.Micro != nil ||
		c.Recompute != "" || c.Precision != "" || c.Batch != nil || c.Context != nil || c.Tokens != nil ||
		c.Within != "" {
		return config.Problem{
			Message: "--mesh, --zero, --micro, --recompute, --precision, --batch, --context, --tokens, --search, " +
				"--within, --svg and --timeline plan a cluster",
			Try: "name it, such as --on 16x8xh100-80gb; on this machine, the config decides all of them",
		}
	}
	price, err := readPrice(c.Price)
	if err != nil {
		return c.problems(err)
	}
	if c.Recipe != "" && !slices.Contains(config.Recipes(), c.Recipe) {
		if _, err := cluster.LookupRecipe(c.Recipe, config.Recipes()...); err != nil {
			return c.problems(errors.Join(err, errOn))
		}
		return c.problems(fmt.Errorf("%s is planned for a cluster: name one, such as --on 128x8xh100-80gb", c.Recipe))
	}
	cfg, err := c.load(s)
	if err != nil {
		return err
	}
	p, err := plan.Foresee(cfg)
	if err != nil {
		return err
	}
	printNeeds(s, cfg, p)
	planned := plannedOnThis(cfg, p, price)
	switch {
	case planned.Cost != nil:
		s.printf("# cost: %s for %s hours\n", hundredths(*planned.Cost), hundredths(*planned.Hours))
	case price > 0:
		s.printf("# cost: unknown without a time\n")
	}
	if !p.Fits {
		return unfitHere(p, planned)
	}
	return s.emit(planned)
}

var errOn = errors.New("--on is missing: name a cluster, such as --on 128x8xh100-80gb")

// A plannedHere has the keys of a plan for a cluster in addition to those of a dry run. Unknown values are null.
type plannedHere struct {
	*plan.Foresight
	Reason          string             `json:"reason,omitempty"` // if it does not fit
	Ranks           []rankHere         `json:"ranks"`
	Step            *float64           `json:"step_seconds"`
	Phases          map[string]float64 `json:"phases"`
	Bubble          float64            `json:"bubble_fraction"`
	Exposed         *float64           `json:"exposed_communication_seconds"` // not predicted here
	TokensPerSecond *float64           `json:"tokens_per_second"`
	MFU             *float64           `json:"mfu"`
	HFU             *float64           `json:"hfu"` // null if layers are recomputed
	Days            *float64           `json:"days"`
	Hours           *float64           `json:"gpu_hours"` // hours of this machine
	Cost            *float64           `json:"cost"`
	Mesh            meshHere           `json:"mesh"`
	Rejected        []struct{}         `json:"rejected"`
}

// A rankHere describes the rank that needs the most memory in a stage of the pipeline.
type rankHere struct {
	Stage  int              `json:"stage"`
	Ranks  int              `json:"ranks"` // of the stage
	Memory map[string]int64 `json:"memory"`
	Bytes  int64            `json:"memory_bytes"`
}

// ranksHere returns the rank of each stage; without a pipeline there is one stage.
func ranksHere(p *plan.Foresight) []rankHere {
	rank := func(stage, ranks int, e plan.Estimate) rankHere {
		parts := map[string]int64{}
		for _, i := range e {
			parts[strings.ReplaceAll(i.Name, " ", "_")] = i.Bytes
		}
		return rankHere{stage, ranks, parts, e.Total()}
	}
	switch {
	case p.Ranks == nil:
		return []rankHere{rank(0, 1, p.Memory)}
	case p.Ranks.Mesh == nil:
		return []rankHere{rank(0, p.Ranks.Count, p.Memory)}
	}
	var list []rankHere
	for i, s := range p.Ranks.Mesh {
		list = append(list, rank(i, s.Last-s.First+1, s.Memory))
	}
	return list
}

type meshHere struct {
	Data      int    `json:"dp"`
	Tensor    int    `json:"tp"`
	Sequence  bool   `json:"sp"`
	Pipeline  int    `json:"pp"`
	Chunks    int    `json:"vpp"`
	Context   int    `json:"cp"`
	Expert    int    `json:"ep"` // experts are not shared among ranks here
	Zero      int    `json:"zero"`
	Micro     int    `json:"micro_batch"`
	Schedule  string `json:"schedule"`
	Recompute string `json:"recompute"`
	Precision string `json:"precision"`
}

func plannedOnThis(cfg *config.Config, p *plan.Foresight, price float64) plannedHere {
	x := cfg.Parallel
	schedule, _ := program.Parse(x.Schedule) // the config was checked
	tensor, pipeline, context := max(x.Tensor, 1), max(x.Pipeline, 1), max(x.Context, 1)
	h := plannedHere{
		Foresight: p, Phases: map[string]float64{}, Rejected: []struct{}{},
		Ranks: ranksHere(p),
		Mesh: meshHere{
			Data: max(x.Ranks, 1) / (tensor * pipeline * context), Tensor: tensor, Sequence: x.Sequence && tensor > 1,
			Pipeline: pipeline, Chunks: max(schedule.Chunks, 1), Context: context, Expert: 1, Zero: x.Zero,
			Micro: cfg.Train.MicroBatch, Schedule: x.Schedule, Recompute: fmt.Sprint(cfg.Memory.Recompute),
			Precision: cfg.Precision,
		},
	}
	if p.Ranks != nil {
		h.Bubble = p.Ranks.Waits
	}
	if t := p.Time; t != nil {
		if h.Mesh.Pipeline > 1 {
			h.Bubble = t.Idle
		}
		days, hours := t.Seconds/86400, t.Seconds/3600
		h.Step, h.Phases, h.TokensPerSecond, h.Days, h.Hours = &t.Step, t.Phases, &t.TokensPerSecond, &days, &hours
		if t.MFU > 0 {
			h.MFU = &t.MFU
			if h.Mesh.Recompute == "none" {
				h.HFU = &t.MFU
			}
		}
		if price > 0 {
			cost := price * hours
			h.Cost = &cost
		}
	}
	return h
}
