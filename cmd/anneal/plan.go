package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"anneal/config"
	"anneal/dataset"
	"anneal/hardware"
	"anneal/internal/fileio"
	"anneal/internal/units"
	"anneal/plan/cluster"
)

type planCmd struct {
	Config    string   `arg:"" optional:"" help:"The YAML config; a run's config.yaml will do."`
	Overrides []string `arg:"" optional:"" name:"section.key=value" help:"Values that replace those of the config."`

	Recipe    string  `placeholder:"NAME" complete:"recipes" help:"A well-known model, such as llama2-70b, instead of a config."`
	On        string  `placeholder:"CLUSTER" help:"NODESxDEVICESxACCELERATOR, such as 128x8xh100-80gb; a YAML file; or the word this for this machine. Default: this."`
	Mesh      string  `placeholder:"dp=N,tp=N,…" help:"How ranks share the model: dp, tp, pp, vpp, cp, ep. Default: data parallelism."`
	Zero      *int    `placeholder:"N" help:"Stage of ZeRO, 0 to 3. Default: 1."`
	Micro     *int    `placeholder:"N" help:"Sequences in a micro-batch. Default: 1."`
	Recompute string  `placeholder:"WHAT" help:"What the backward pass recomputes: none, attention, half or full. Default: none."`
	Precision string  `placeholder:"FORMAT" help:"Number format of matrix products: bf16, fp16, fp8 or fp4. Default: bf16."`
	Batch     *int    `placeholder:"N" help:"Sequences in a step. Default: the recipe's."`
	Context   *int    `placeholder:"N" help:"Tokens in a sequence. Default: the recipe's."`
	Tokens    *tokens `placeholder:"N" help:"Tokens of the whole training. Default: the recipe's."`
	Search    bool    `help:"Find the best meshes. Values given by --mesh, --zero, --micro and --recompute stay fixed."`
	Within    string  `placeholder:"30d" help:"With --search: only meshes that finish in this time."`
	Price     string  `placeholder:"2.50/gpu-hour" help:"Price of a device per hour."`
	SVG       outFile `name:"svg" placeholder:"FILE" example:"plan.svg" help:"Draw the memory of each stage; with --search, the best meshes by time and cost."`
	Timeline  outFile `placeholder:"FILE" example:"step.svg" help:"Draw what each stage does in a step: FILE.svg, or FILE.json for Perfetto."`
}

func (planCmd) Help() string {
	return example("anneal plan --recipe llama2-70b --on 128x8xh100-80gb --mesh dp=16,tp=8,pp=8",
		"anneal plan --recipe llama3-405b --on 2048x8xh100-80gb --search --price 2.50/gpu-hour",
		"anneal plan --recipe llama2-70b --on 128x8xh100-80gb --search --mesh tp=8 --zero 1 --within 30d",
		"anneal plan --recipe llama2-70b --on 16x8xh100-80gb --mesh tp=8,pp=4 --svg memory.svg --timeline step.svg",
		"anneal plan examples/tiny.yaml data.path=data/go",
		"anneal plan examples/gpt2-small.yaml model.vocab=50304 --on 8xh100-80gb") +
		"\n\nMFU on a cluster counts the products of attention with all tokens, as published runs do; on this " +
		"machine only the causal\nhalf. A plan that does not fit ends with exit code 6."
}

func (c planCmd) Run(s *session) error {
	c.Recipe = strings.ToLower(c.Recipe)
	if c.On == "" || c.On == onThis {
		return c.here(s)
	}
	model, err := c.model(s)
	var conf *config.Error
	var data *dataset.Error
	if errors.As(err, &conf) || errors.As(err, &data) {
		return err // with places in the config, or with the exit code for data
	}
	r, fixed, tokens, err := c.run(model, err)
	if err != nil {
		return c.problems(err)
	}
	if c.Search {
		return c.search(s, r, fixed, tokens)
	}
	step, err := r.Shortened()
	if err != nil {
		return c.problems(err)
	}
	return c.print(s, r, step, tokens)
}

// run turns the flags into a run, the axes of its mesh that the flags fix, and the number of tokens. err is the fault
// of the model, if any; the returned error joins it with all other faults.
func (c planCmd) run(recipe cluster.Recipe, err error) (*cluster.Run, cluster.Axes, float64, error) {
	faults := []error{err}
	on, err := c.cluster()
	faults = append(faults, err)
	devices := 1
	if on != nil {
		devices = on.Devices
	}
	mesh, fixed, err := c.mesh(devices)
	faults = append(append(faults, err), c.faults()...)
	price, err := readPrice(c.Price)
	faults = append(faults, err)
	if on != nil && c.Price != "" {
		on.Price = price
	}
	r := &cluster.Run{Shape: recipe.Shape, Mesh: mesh, Batch: recipe.Batch, Cluster: on, Stack: cluster.Modern}
	if c.Batch != nil && *c.Batch > 0 { // faults reports other values
		r.Batch = *c.Batch
	}
	if c.Context != nil && *c.Context > 0 {
		r.Shape.Context = *c.Context
	}
	tokens := recipe.Tokens
	if c.Tokens != nil && *c.Tokens > 0 {
		tokens = float64(*c.Tokens)
	}
	if c.Search || mesh.Data == 0 { // of a mesh that cannot be read, only the other flags are checked
		faults = append(faults, r.CheckAxes(fixed))
	} else {
		faults = append(faults, r.Check())
	}
	return r, fixed, tokens, errors.Join(faults...)
}

// mesh turns the flags into a mesh, and returns which axes they fix.
func (c planCmd) mesh(devices int) (cluster.Mesh, cluster.Axes, error) {
	mesh, fixed, err := cluster.ParseMesh(c.Mesh, devices)
	faults := []error{err}
	if fixed == nil {
		fixed = cluster.Axes{}
	}
	mesh.Precision, err = cluster.Precise(cmp.Or(c.Precision, string(hardware.BF16)))
	faults = append(faults, err)
	mesh.Zero, mesh.Micro, mesh.Recompute = 1, 1, cluster.None
	if c.Zero != nil {
		mesh.Zero, fixed["zero"] = *c.Zero, true
	}
	if c.Micro != nil {
		mesh.Micro, fixed["micro"] = *c.Micro, true
	}
	if c.Recompute != "" {
		mesh.Recompute, err = cluster.ParseRecompute(c.Recompute)
		fixed["recompute"] = true
		faults = append(faults, err)
	}
	return mesh, fixed, errors.Join(faults...)
}

// problems lists the joined errors; errors of a hardware file keep their places.
func (c planCmd) problems(err error) error {
	var list []config.Problem
	var add func(err error)
	add = func(err error) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				add(e)
			}
			return
		}
		p := config.Problem{Message: err.Error()}
		if f, ok := err.(hardware.Fault); ok {
			p.Message, p.At = f.Message, c.On
			if f.Line > 0 {
				p.At = fmt.Sprint(c.On, ":", f.Line)
			}
		}
		list = append(list, p)
	}
	add(err)
	return &config.Error{Problems: list}
}

// faults returns the errors that concern a flag alone.
func (c planCmd) faults() (list []error) {
	list = append(list, atLeastOne("--batch", c.Batch), atLeastOne("--context", c.Context),
		atLeastOne("--tokens", c.Tokens))
	if t := string(c.Timeline); t != "" && !fileio.IsStdout(t) && !strings.HasSuffix(t, ".svg") &&
		!strings.HasSuffix(t, ".json") {
		list = append(list, fmt.Errorf("--timeline %s must end in .svg, for a picture, or .json, for Perfetto", t))
	}
	if _, err := c.within(); err != nil {
		list = append(list, err)
	}
	if c.Within != "" && !c.Search {
		list = append(list, errors.New("--within chooses among meshes: it needs --search"))
	}
	return list
}

// within reads the time of --within; 0 without the flag.
func (c planCmd) within() (time.Duration, error) {
	if c.Within == "" {
		return 0, nil
	}
	d, err := readDuration(c.Within, time.Minute)
	if err == nil && d == 0 {
		err = fmt.Errorf("%q is no time", c.Within)
	}
	if err != nil {
		return 0, fmt.Errorf("--within: %w", err)
	}
	return d, nil
}

// atLeastOne returns an error for a flag that is given and below 1.
func atLeastOne[T int | tokens](flag string, n *T) error {
	if n == nil || *n >= 1 {
		return nil
	}
	return fmt.Errorf("%s is %d, must be at least 1", flag, *n)
}

func (c planCmd) cluster() (*hardware.Cluster, error) {
	if !strings.HasSuffix(c.On, ".yaml") && !strings.HasSuffix(c.On, ".yml") {
		return hardware.Parse(c.On)
	}
	f, err := os.Open(c.On)
	if err != nil {
		return nil, fmt.Errorf("--on: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, err
	}
	return hardware.Read(text)
}

// perHour are the spellings of the unit of a price, a device for an hour; "" stands for no unit.
var perHour = []string{"", "gpu-hour", "device-hour", "hour", "h"}

// readPrice reads 2.50/gpu-hour.
func readPrice(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	amount, unit, _ := strings.Cut(text, "/")
	price, err := units.Number(strings.TrimPrefix(amount, "$"))
	if err != nil || price < 0 || price > 1e6 || !slices.Contains(perHour, strings.ToLower(unit)) {
		return 0, fmt.Errorf("--price %s is no price of a device for an hour, such as 2.50/gpu-hour", text)
	}
	return price, nil
}
