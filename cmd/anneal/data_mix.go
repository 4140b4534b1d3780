package main

import (
	"fmt"
	"strings"
	"time"

	"anneal/config"
	"anneal/internal/units"
	"anneal/prepare"
)

type dataMixCmd struct {
	Sources     []string `arg:"" name:"NAME=DIR" help:"Data sets, each with a name."`
	Method      string   `default:"natural" enum:"natural,temperature,unimax" help:"natural: by size; temperature: by size^(1/T); unimax: evenly, but no source more than --epochs times."`
	Temperature float64  `placeholder:"T" help:"Temperature T, such as 3.3: 1 is natural, higher is more even."`
	Epochs      float64  `placeholder:"N" help:"For unimax: the most epochs of any source, such as 4."`
	Weights     string   `placeholder:"TEXT" help:"Explicit weights instead of a method, such as 'web=0.7 code=0.3'."`
	Tokens      tokens   `placeholder:"N" help:"Tokens of the run, such as 1B. Default: all tokens of the data sets."`
	Context     int      `default:"2048" placeholder:"N" help:"Tokens in a row, like model.context."`
	Packing     string   `default:"concat" enum:"concat,best_fit,pad" help:"How documents become rows, as data.packing."`
}

func (dataMixCmd) Help() string {
	return example("anneal data mix --method unimax --epochs 4 --tokens 1B web=data/web code=data/code",
		"anneal data mix --weights 'web=0.7 code=0.3' --tokens 1B web=data/web code=data/code --json") +
		"\n\nPrints the tokens and epochs of each source, and the lines for the config. Nothing is trained."
}

func (c dataMixCmd) Run(s *session) error {
	start := time.Now()
	o, err := c.options()
	if err != nil {
		return err
	}
	p, lines, err := prepare.PlanMix(o)
	if err != nil {
		return asData(err)
	}
	for _, line := range mixTable(p) {
		s.printf("%s\n", line)
	}
	for _, remark := range p.Remarks() {
		s.notef("%s", remark)
	}
	s.printf("\n%s\n", strings.TrimSuffix(lines, "\n"))
	elapsed, read := time.Since(start), int64(0)
	for _, x := range p.Sources {
		read += x.Drawn
	}
	s.closing("a plan of "+units.Commas(read)+" tokens", "", elapsed,
		command(append(trainExample(), "data.mix="+strings.Join(c.Sources, ", "), "data.weights="+o.Method,
			"--out", "runs/mix")...))
	return s.emit(struct {
		*prepare.MixPlan
		Config  string  `json:"config"`
		Seconds float64 `json:"seconds"`
	}{p, lines, elapsed.Seconds()})
}

func (c dataMixCmd) options() (prepare.MixOptions, error) {
	o := prepare.MixOptions{Method: c.Method, Tokens: int64(c.Tokens), Context: c.Context, Packing: c.Packing}
	number := map[string]float64{"temperature": c.Temperature, "unimax": c.Epochs}[c.Method]
	switch {
	case c.Context < 1 || c.Context > 1<<20:
		return o, &usageError{fmt.Sprintf("--context %d is not a number of tokens from 1 to 1048576", c.Context),
			"try --context 2048"}
	case c.Tokens > 0 && int64(c.Tokens) < int64(c.Context):
		return o, &usageError{
			fmt.Sprintf("--tokens %d is less than one row of %s", c.Tokens, units.Commas(c.Context)),
			fmt.Sprintf("try --tokens %d or a smaller --context", c.Context),
		}
	case c.Temperature != 0 && c.Method != "temperature" || c.Epochs != 0 && c.Method != "unimax":
		return o, &usageError{"--temperature needs --method temperature, and --epochs needs --method unimax",
			"try --method unimax --epochs 4"}
	case c.Weights != "" && c.Method != "natural":
		return o, &usageError{"--weights cannot be combined with --method " + c.Method, "try one of them"}
	case c.Weights != "":
		o.Method = c.Weights
	case c.Method != "natural" && !(number > 0):
		return o, &usageError{fmt.Sprintf("--method %s needs a number above 0", c.Method),
			map[string]string{"temperature": "try --temperature 3.3", "unimax": "try --epochs 4"}[c.Method]}
	case c.Method != "natural":
		o.Method = fmt.Sprintf("%s:%v", c.Method, number)
	}
	sources, err := config.ParseSources(strings.Join(c.Sources, ","))
	if err != nil {
		return o, &usageError{err.Error(), "try web=data/web code=data/code"}
	}
	o.Sources = sources
	names := make([]string, len(sources))
	for i, x := range sources {
		names[i] = x.Name
	}
	if o.Weights, err = config.ParseWeighting(o.Method, names); err != nil {
		return o, &usageError{err.Error(), "try --weights 'web=0.7 code=0.3' with the names of the sources"}
	}
	return o, nil
}

// mixTable shows how much a run reads of each source.
func mixTable(p *prepare.MixPlan) []string {
	wide := len("source")
	for _, x := range p.Sources {
		wide = max(wide, len(x.Name))
	}
	lines := []string{fmt.Sprintf("%-*s  %17s  %8s  %17s  %7s  %17s",
		wide, "source", "tokens", "weight", "tokens read", "epochs", "of them repeats")}
	for _, x := range p.Sources {
		lines = append(lines, fmt.Sprintf("%-*s  %17s  %8.4f  %17s  %7.2f  %17s",
			wide, x.Name, units.Commas(x.Tokens), x.Weight, units.Commas(x.Drawn), x.Epochs, units.Commas(x.Again)))
	}
	if len(p.Weights) < 2 {
		return lines
	}
	for _, c := range p.Weights {
		line := "weights from " + units.Commas(c.From) + " tokens on:"
		for i, w := range c.Weights {
			line += fmt.Sprintf(" %s %.4f", p.Sources[i].Name, w)
			if c.To != nil {
				line += fmt.Sprintf(" → %.4f", c.To[i])
			}
		}
		lines = append(lines, line)
	}
	return lines
}
