package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"anneal/config"
	"anneal/hardware"
	"anneal/internal/units"
	"anneal/plan/cluster"
	"anneal/program/draw"
)

type planCmd struct {
	Config    string   `arg:"" optional:"" help:"A YAML config of a run of this program: what it needs here."`
	Overrides []string `arg:"" optional:"" name:"section.key=value" help:"Values that replace those of the config."`

	Recipe    string        `placeholder:"NAME" help:"A well-known model, such as llama2-70b, instead of a config."`
	On        string        `placeholder:"CLUSTER" help:"Nodes x devices x accelerator, such as 128x8xh100-80gb, or a YAML file."`
	Mesh      string        `placeholder:"dp=N,tp=N,…" help:"How ranks share the model: dp, tp, pp, vpp, cp, ep. Default: data parallelism."`
	Zero      int           `default:"1" help:"Stage of ZeRO."`
	Micro     int           `default:"1" help:"Sequences in a micro-batch."`
	Recompute string        `default:"none" enum:"none,attention,half,full" help:"What the backward pass computes again: ${enum}."`
	Precision string        `default:"bf16" help:"Of products: bf16, fp16, fp8 or fp4."`
	Batch     int           `placeholder:"N" help:"Sequences of a step. Default: the recipe's."`
	Context   int           `placeholder:"N" help:"Tokens of a sequence. Default: the recipe's."`
	Tokens    int64         `placeholder:"N" help:"Tokens of the whole training. Default: the recipe's."`
	Search    bool          `help:"Find the best meshes."`
	Within    time.Duration `placeholder:"30d" help:"With --search: only meshes that finish in this time."`
	Price     string        `placeholder:"2.50/gpu-hour" help:"What a device costs for an hour."`
	SVG       outFile       `name:"svg" placeholder:"FILE" example:"plan.svg" help:"Draw the memory of each stage; with --search, the best meshes by time and cost."`
	Timeline  outFile       `placeholder:"FILE" example:"step.svg" help:"Draw a step: FILE.svg, or FILE.json for Perfetto."`
}

func (planCmd) Help() string {
	return example("anneal plan --recipe llama2-70b --on 128x8xh100-80gb --mesh dp=16,tp=8,pp=8",
		"anneal plan --recipe llama3-405b --on 2048x8xh100-80gb --search --price 2.50/gpu-hour",
		"anneal plan --recipe llama2-70b --on 16x8xh100-80gb --mesh tp=8,pp=4 --svg memory.svg --timeline step.svg",
		"anneal plan examples/tiny.yaml data.path=data/go")
}

func (c planCmd) Run(s *session) error {
	if c.Recipe == "" {
		if c.On != "" || c.Search || c.Mesh != "" || c.SVG != "" || c.Timeline != "" {
			return config.Problem{Key: "--recipe",
				Message: "--on, --mesh, --search, --svg and --timeline plan a recipe",
				Try:     "name one, such as --recipe llama2-70b"}
		}
		return trainCmd{Config: c.Config, Overrides: c.Overrides, DryRun: true, Only: "model"}.Run(s)
	}
	r, tokens, err := c.run()
	if err != nil {
		return config.Problem{Message: err.Error()}
	}
	if c.Search {
		return c.search(s, r, tokens)
	}
	step, err := r.Shortened()
	if c.Timeline != "" && err == nil {
		step, err = r.Simulate()
	}
	if err != nil {
		return config.Problem{Message: err.Error()}
	}
	return c.print(s, r, step, tokens)
}

// run reads the flags; the error lists everything that is wrong.
func (c planCmd) run() (*cluster.Run, float64, error) {
	recipe, err := cluster.LookupRecipe(c.Recipe)
	faults := []error{err}
	if c.On == "" {
		faults = append(faults, errors.New("--on is missing: name a cluster, such as --on 128x8xh100-80gb"))
	}
	on, err := c.cluster()
	faults = append(faults, err)
	devices := 1
	if on != nil {
		devices = on.Devices
	}
	mesh, err := cluster.ParseMesh(c.Mesh, devices)
	faults = append(faults, err)
	mesh.Precision, err = cluster.Precise(c.Precision)
	faults = append(faults, err)
	price, err := readPrice(c.Price)
	faults = append(append(faults, err), c.faults()...)
	if on == nil || recipe.Shape.Name == "" || mesh.Data == 0 {
		return nil, 0, errors.Join(faults...)
	}
	if price > 0 {
		on.Price = price
	}
	mesh.Zero, mesh.Micro, mesh.Recompute = c.Zero, c.Micro, cluster.Recompute(c.Recompute)
	r := &cluster.Run{Shape: recipe.Shape, Mesh: mesh, Batch: recipe.Batch, Cluster: on, Stack: cluster.Modern}
	if c.Batch > 0 {
		r.Batch = c.Batch
	}
	if c.Context > 0 {
		r.Shape.Context = c.Context
	}
	tokens := recipe.Tokens
	if c.Tokens > 0 {
		tokens = float64(c.Tokens)
	}
	if !c.Search {
		faults = append(faults, r.Check())
	}
	return r, tokens, errors.Join(faults...)
}

// faults returns what is wrong with flags by themselves.
func (c planCmd) faults() (list []error) {
	for _, f := range []struct {
		name string
		n    int64
	}{{"--batch", int64(c.Batch)}, {"--context", int64(c.Context)}, {"--tokens", c.Tokens}} {
		if f.n < 0 {
			list = append(list, fmt.Errorf("%s is %d, must be at least 1", f.name, f.n))
		}
	}
	if c.Within < 0 {
		list = append(list, fmt.Errorf("--within is %v, must be more than nothing", c.Within))
	}
	if c.Within != 0 && !c.Search {
		list = append(list, errors.New("--within chooses among meshes: it needs --search"))
	}
	if c.Search && c.Mesh != "" {
		list = append(list, errors.New("--search finds the mesh: leave out --mesh"))
	}
	return list
}

func (c planCmd) cluster() (*hardware.Cluster, error) {
	if c.On == "" {
		return nil, nil
	}
	if !strings.HasSuffix(c.On, ".yaml") && !strings.HasSuffix(c.On, ".yml") {
		return hardware.Parse(c.On)
	}
	f, err := os.Open(c.On)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, err
	}
	on, err := hardware.Read(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.On, err)
	}
	return on, nil
}

// readPrice reads 2.50/gpu-hour; the unit may be left out.
func readPrice(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	amount, _, _ := strings.Cut(text, "/")
	price, err := units.Number(strings.TrimPrefix(amount, "$"))
	if err != nil || price < 0 || price > 1e6 {
		return 0, fmt.Errorf("--price %s is no price of a device for an hour, such as 2.50/gpu-hour", text)
	}
	return price, nil
}

// A planned run is what scripts read.
type plannedRun struct {
	Fits   bool          `json:"fits"`
	Reason string        `json:"reason,omitempty"`
	Ranks  []plannedRank `json:"ranks"`
	*cluster.Step
	Days       float64             `json:"days"`
	Hours      float64             `json:"gpu_hours"`
	Cost       *float64            `json:"cost"` // null without a price
	Mesh       cluster.Mesh        `json:"mesh"`
	Devices    int                 `json:"devices"`
	Rejected   []cluster.Rejected  `json:"rejected"`
	Front      []plannedRun        `json:"front,omitempty"`
	Efficiency hardware.Efficiency `json:"efficiency"`
}

type plannedRank struct {
	Stage  int            `json:"stage"`
	Ranks  int            `json:"ranks"` // of the stage, alike
	Memory cluster.Memory `json:"memory"`
	Bytes  float64        `json:"memory_bytes"`
}

func planned(r *cluster.Run, step *cluster.Step, tokens float64) plannedRun {
	p := plannedRun{Step: step, Mesh: r.Mesh, Devices: r.Cluster.Devices, Rejected: []cluster.Rejected{},
		Efficiency: r.Cluster.Accelerator.Efficiency()}
	device, most := cluster.Usable*r.Cluster.Accelerator.Memory, 0.0
	for i, m := range r.Memory(step) {
		p.Ranks = append(p.Ranks, plannedRank{i, r.Mesh.Ranks() / r.Mesh.Pipeline, m, m.Total()})
		most = max(most, m.Total())
	}
	if p.Fits = most <= device; !p.Fits {
		p.Reason = fmt.Sprintf("the fullest rank needs %.1f GB; %.1f GB of a device can be used. %s", most/1e9,
			device/1e9, r.TooSmall())
	}
	seconds := tokens / step.Tokens
	p.Days, p.Hours = seconds/86400, seconds/3600*float64(r.Cluster.Devices)
	if price := r.Cluster.Price; price > 0 {
		cost := price * p.Hours
		p.Cost = &cost
	}
	return p
}

func (c planCmd) print(s *session, r *cluster.Run, step *cluster.Step, tokens float64) error {
	p := planned(r, step, tokens)
	if err := c.draw(s, r, step); err != nil {
		return err
	}
	err := s.picture(c.SVG, func(w io.Writer) error { return memorySVG(w, r, p) })
	if err != nil {
		return err
	}
	if s.json {
		return s.emit(p)
	}
	s.describe(r, p, tokens)
	return nil
}

// describe prints a plan for people.
func (s *session) describe(r *cluster.Run, p plannedRun, tokens float64) {
	all, active := r.Shape.Parameters()
	s.printf("%s: %.1fB parameters", r.Shape.Name, all/1e9)
	if active < all {
		s.printf(", %.1fB of them for a token", active/1e9)
	}
	s.printf(" on %s\n  %s\n", r.Cluster, r.Cluster.Accelerator)
	s.printf("mesh           %s, %d sequences of %d tokens a step\n", r.Mesh, r.Batch, r.Shape.Context)
	s.printf("step           %.3f s: %s tokens/s, MFU %.1f %%, HFU %.1f %%\n", p.Seconds, thousands(int64(p.Tokens)),
		100*p.MFU, 100*p.HFU)
	for _, x := range []struct {
		name string
		t    float64
	}{
		{"forward", p.Phases.Forward}, {"backward", p.Phases.Backward}, {"recompute", p.Phases.Recompute},
		{"tensor messages", p.Phases.Tensor}, {"layer messages", p.Phases.Other}, {"data messages", p.Phases.Data},
		{"optimizer", p.Phases.Optimizer}, {"idle", p.Phases.Idle},
	} {
		if x.t > 0.0005*p.Seconds {
			share := x.t / p.Seconds
			s.printf("  %-16s %8.3f s %5.1f %%  %s\n", x.name, x.t, 100*share, strings.Repeat("█", int(40*share+0.5)))
		}
	}
	s.printf("training       %.3gT tokens: %.1f days, %s device hours", tokens/1e12, p.Days, thousands(int64(p.Hours)))
	if p.Cost != nil {
		s.printf(", cost %s", thousands(int64(*p.Cost)))
	}
	s.printf("\nmemory         of a rank of each stage, of %.0f GB\n", r.Cluster.Accelerator.Memory/1e9)
	s.bars(p, r.Cluster.Accelerator.Memory)
	if !p.Fits {
		s.printf("does not fit:  %s\n", p.Reason)
	}
}

// bars draws the memory of each stage; of many stages those at the ends.
func (s *session) bars(p plannedRun, device float64) {
	for i, k := range p.Ranks {
		if len(p.Ranks) > 8 && i > 2 && i < len(p.Ranks)-2 {
			continue
		}
		m, line, sum := k.Memory, "", 0.0
		for _, part := range memoryParts {
			sum += part.bytes(m)
			if cells := int(50*min(sum/device, 1.2) + 0.5); cells > len(line) {
				line += strings.Repeat(part.letter, cells-len(line))
			}
		}
		s.printf("  stage %-3d %6.1f GB |%-50s|\n", k.Stage, k.Bytes/1e9, line)
	}
	for _, part := range memoryParts {
		s.printf("  %s %s", part.letter, part.name)
	}
	s.printf("\n")
}

// draw writes the timeline, if a file was asked for.
func (c planCmd) draw(s *session, r *cluster.Run, step *cluster.Step) error {
	if strings.HasSuffix(string(c.Timeline), ".json") {
		return s.picture(c.Timeline, step.Perfetto)
	}
	return s.picture(c.Timeline, func(w io.Writer) error {
		return draw.SVG(w, []draw.Panel{{Title: r.Mesh.String(), Lists: step.Lists, Chunks: r.Mesh.Chunks,
			Timeline: step.Timeline}})
	})
}

func (c planCmd) search(s *session, r *cluster.Run, tokens float64) error {
	found, err := cluster.Find(*r)
	if err != nil {
		return err
	}
	if found.Best == nil {
		return config.Problem{Message: "no mesh fits: " + found.Advice}
	}
	late := func(f *cluster.Found) bool {
		return c.Within > 0 && tokens/f.Step.Tokens > c.Within.Seconds()
	}
	best := planned(found.Best.Run, found.Best.Step, tokens)
	if late(found.Best) {
		return config.Problem{Message: fmt.Sprintf("no mesh finishes within %v: the fastest, %s, takes %.1f days",
			c.Within, found.Best.Mesh, best.Days)}
	}
	found.Front = slices.DeleteFunc(found.Front, late)
	if err := c.draw(s, found.Best.Run, found.Best.Step); err != nil {
		return err
	}
	best.Rejected = found.Rejected
	for _, f := range found.Front {
		best.Front = append(best.Front, planned(f.Run, f.Step, tokens))
	}
	if err := s.picture(c.SVG, frontChart(r.Shape.Name, best.Front, found.Front).SVG); err != nil {
		return err
	}
	if s.json {
		return s.emit(best)
	}
	s.printf("%d meshes were considered; the fastest is\n\n", found.Tried)
	s.describe(found.Best.Run, best, tokens)
	s.printf("\nnone is better in time, cost and free memory than one of these\n")
	s.printf("%10s %8s %14s %6s  %s\n", "step", "days", "device hours", "free", "devices, mesh")
	for i, f := range found.Front {
		s.printf("%8.3f s %8.1f %14s %5.0f%%  %6d %s\n", f.Step.Seconds, best.Front[i].Days,
			thousands(int64(best.Front[i].Hours)), 100*f.Room, f.Count, f.Mesh)
	}
	s.printf("\nothers, beside the fastest\n")
	for _, x := range found.Rejected {
		s.printf("  %s: %s\n", x.Mesh, x.Reason)
	}
	return nil
}
