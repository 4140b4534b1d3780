package main

import (
	"fmt"
	"io"

	"anneal/attention"
	"anneal/config"
	"anneal/internal/units"
)

type attentionCmd struct {
	Show attentionShowCmd `cmd:"" help:"Draw attention patterns: which tokens attend to which, and to how many."`
}

type attentionShowCmd struct {
	Pattern string `arg:"" help:"A pattern, or one per layer with commas between them: window:256,full."`
	Len     int    `default:"1024" help:"Tokens in a row."`
	Heads   int    `default:"2" help:"Query heads."`
	Layers  int    `placeholder:"N" help:"Layers of the model; patterns are assigned to them in turn. Default: as many as show every pattern, and every stage of one that changes with depth."`
	Head    *int   `placeholder:"N" help:"Head to draw, from 0. Default: the first two that differ."`
	Seed    uint64 `default:"1" help:"Seed of random blocks, if the pattern sets none."`
	svgFlag
}

func (attentionShowCmd) Help() string {
	return example("anneal attention show window:256,full --len 1024",
		"anneal attention show bigbird --len 4096 --head 0 --svg bigbird.svg",
		"anneal attention show longnet:512/1:2048/4 --len 16384 --heads 8",
		"anneal attention show longformer:64:8:dilation=1/1/1/2/3/4 --layers 12 --head 1",
		"anneal attention show fixed:128:8 --len 8192 --heads 4 --json") +
		"\n\n`anneal explain model.attention` lists the patterns. Relative cost counts keys in tiles of 64, " +
		"as the kernel loads them."
}

// drawnHeads is the number of distinct heads that are drawn if no flag chooses a head.
const drawnHeads = 2

func (c attentionShowCmd) Run(s *session) error {
	switch {
	case c.Len < 1 || c.Len > 1<<20:
		return &usageError{fmt.Sprintf("--len %d is not a number of tokens from 1 to 1048576", c.Len), "try --len 1024"}
	case c.Heads < 1 || c.Heads > 1<<12:
		return &usageError{fmt.Sprintf("--heads %d is not a number from 1 to 4096", c.Heads), "try --heads 8"}
	case c.Layers < 0 || c.Layers > 1<<12:
		return &usageError{fmt.Sprintf("--layers %d is not a number from 1 to 4096", c.Layers), "try --layers 12"}
	case c.Head != nil && (*c.Head < 0 || *c.Head >= c.Heads):
		return &usageError{fmt.Sprintf("--head %d does not exist: there are %d heads, counted from 0",
			*c.Head, c.Heads), "try --head 0"}
	}
	list, err := attention.Describe(c.Pattern, c.Len, c.Heads, c.Layers, c.Seed)
	if err != nil {
		return asUsage(err)
	}
	var panels []attention.Panel
	var density, layers float64
	wide := len("together")
	for _, d := range list {
		wide = max(wide, len(d.Pattern))
	}
	s.printf("%-*s  layers   density  keys, mean       most  relative cost\n", wide, "pattern")
	for _, d := range list {
		s.printf("%-*s  %6d  %8s  %10.1f  %9s  %13s\n", wide, d.Pattern, d.Layers, attention.Percent(d.Density), d.Mean,
			units.Commas(d.Max), attention.Percent(d.Cost))
		density, layers = density+float64(d.Layers)*d.Density, layers+float64(d.Layers)
		if c.Head != nil {
			panels = append(panels, d.Panel(*c.Head))
		} else {
			panels = append(panels, d.Panels(drawnHeads)...)
		}
	}
	if len(list) > 1 {
		s.printf("%-*s  %6.0f  %8s\n", wide, "together", layers, attention.Percent(density/layers))
	}
	s.printf("\n")
	if err := attention.Terminal(s.out(), panels, s.columns()); err != nil {
		return err
	}
	if err := s.picture(c.SVG, func(w io.Writer) error { return attention.SVG(w, panels) }); err != nil {
		return err
	}
	return s.emit(map[string]any{"length": c.Len, "heads": c.Heads, "patterns": list, "density": density / layers})
}

// explainAttention prints the table of patterns.
func explainAttention(s *session, k config.Key) error {
	row := func(pattern, options, sees string) { s.row(fmt.Sprintf("  %-40s %-27s", pattern, options), sees) }
	s.printf("\n")
	row("pattern", "default options", "a token sees itself and")
	for _, p := range attention.Kinds() {
		row(p.Text, p.Left, p.Sees)
	}
	return s.emit(struct {
		config.Key
		Patterns []attention.Kind `json:"patterns"`
	}{k, attention.Kinds()})
}
