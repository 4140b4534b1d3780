package main

import (
	"fmt"
	"runtime"
	"strings"

	"anneal/attention"
	"anneal/bench"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/device/cuda"
	"anneal/internal/isa"
	"anneal/internal/units"
	"anneal/tensor"
)

type benchAttentionCmd struct {
	Patterns []string  `arg:"" optional:"" help:"Patterns to measure, as for anneal attention show. Default: one of each kind."`
	Lengths  []int     `default:"1024,2048,4096,8192,16384,32768,65536,131072" placeholder:"N" help:"Tokens in a row."`
	Heads    int       `default:"8" help:"Query heads, with a key-value head each."`
	HeadDim  int       `default:"64" help:"Size of a head."`
	Storage  string    `name:"dtype" default:"bf16" enum:"bf16,fp32" help:"Number format of activations: bf16 or fp32."`
	Seconds  inSeconds `default:"1" help:"Time for each case. If one run would take longer, it has fewer heads, at least one."`
	deviceFlag
	threadsFlag
	svgFlag
}

// benchPatterns has one pattern of each kind.
var benchPatterns = []string{"full", "window:1024", "longformer", "bigbird", "strided", "fixed", "longnet", "linear"}

// lacksKernel refuses patterns that a card cannot compute.
func lacksKernel(device, text string, p attention.Pattern) error {
	if l, linear := p.(attention.Linear); linear && !l.OnCards() && device == "cuda" {
		return &usageError{text + " has no kernel for cuda", "try --device cpu, or linear:gated"}
	}
	return nil
}

func (benchAttentionCmd) Help() string {
	return example("anneal bench attention --lengths 1024,4096,16384 --svg attention.svg", "anneal bench attention "+
		"full window:256 longnet:512 --heads 4 --json") +
		"\n\nForward and backward pass of one row. GFLOP/s count the visible pairs of query and key only." +
		"\nover dense: time / (density × time of full attention). It needs full before the pattern."
}

func (c benchAttentionCmd) Run(s *session) error {
	tier, err := isa.Choose()
	if err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	threads := min(int(c.Threads), runtime.GOMAXPROCS(0))
	open := func() device.Device { return cpu.NewTier(tier, threads) }
	if c.Device == "cuda" {
		card, err := cuda.Open(0)
		if err != nil {
			return err
		}
		defer card.Close()
		open = bench.Shared(card)
	}
	s.printf(" tokens  heads          ms     memory  density   GFLOP/s  of peak  over dense  pattern\n")
	report, err := bench.Attention(open, o, func(m bench.AttentionCase) {
		s.printf("%7d  %5d  %10.1f  %9s  ", m.Length, m.Heads, 1e3*m.Seconds, memorySize(int64(m.PeakBytes)))
		if m.Density > 0 {
			s.printf("%7s  %8s  %6.0f%%  ", attention.Percent(m.Density),
				strings.TrimSuffix(units.Rate(m.GFLOPS), " GFLOP/s"), 100*m.FractionOfPeak)
		} else {
			s.printf("%7s  %8s  %7s  ", "–", "–", "–")
		}
		if m.OverDense > 0 && m.Pattern != "full" {
			s.printf("%9.2f×  %s\n", m.OverDense, m.Pattern)
		} else {
			s.printf("%10s  %s\n", "–", m.Pattern)
		}
	})
	if err != nil {
		return err
	}
	s.printf("\n")
	if err := s.draw(report.Chart(), c.SVG); err != nil {
		return err
	}
	s.printf("\n")
	for _, g := range report.Growth {
		s.printf("from %d tokens on time grows as length^%.2f: %s\n", g.From, g.Exponent, g.Pattern)
	}
	s.printf("%s, %s: peak %s\n", report.Device, report.DType, units.Rate(report.PeakGFLOPS))
	return s.emit(report)
}

// options turns the flags into options and checks them before anything is measured.
func (c benchAttentionCmd) options() (bench.AttentionOptions, error) {
	o := bench.AttentionOptions{
		Patterns: c.Patterns, Lengths: c.Lengths, Heads: c.Heads, HeadDim: c.HeadDim, DType: tensor.BF16,
		Seconds: float64(c.Seconds),
	}
	if c.Storage == "fp32" {
		o.DType = tensor.F32
	}
	if o.Patterns == nil {
		o.Patterns = benchPatterns
	}
	switch {
	case len(c.Lengths) == 0:
		return o, &usageError{"--lengths is empty", "try --lengths 1024,4096"}
	case c.Heads < 1 || c.Heads > 1<<10:
		return o, &usageError{fmt.Sprintf("--heads %d is not a number from 1 to 1024", c.Heads), "try --heads 8"}
	case c.HeadDim < 1 || c.HeadDim > 1<<10:
		return o, &usageError{fmt.Sprintf("--head-dim %d is not a size from 1 to 1024", c.HeadDim), "try --head-dim 64"}
	}
	for _, n := range c.Lengths {
		if n < 1 || n > 1<<20 {
			return o, &usageError{fmt.Sprintf("--lengths %d is not a number of tokens from 1 to 1048576", n),
				"try --lengths 1024,4096"}
		}
	}
	for _, text := range o.Patterns {
		p, err := attention.Parse(text)
		if err != nil {
			return o, asUsage(err)
		}
		if err := lacksKernel(c.Device, text, p); err != nil {
			return o, err
		}
		for _, n := range c.Lengths {
			if err := attention.CheckLayers([]attention.Pattern{p}, n, c.Heads, 1); err != nil {
				return o, asUsage(err)
			}
		}
	}
	return o, nil
}
