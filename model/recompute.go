package model

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	sparse "anneal/attention"
	"anneal/internal/units"
	"anneal/precision"
	"anneal/tensor"
)

// Activation checkpointing (Chen et al. 2016, arXiv 1604.06174; selective: Korthikanti et al. 2022, arXiv
// 2205.05198): backward recomputes the intermediate results of some layers instead of keeping them. Gradients do not
// change by a bit.
//
// Every strategy treats a layer in one of three ways. With e bytes per activation and f bytes per number of the
// residual stream (BF16: 2 and 4) and Q = (H+2K)·E, a plain layer keeps e·(2D + Q + HE + 2F) + f·(H+2) per token:
//
//	plain      keeps all of it. Results that are cheap to recompute (outputs of norms and activation functions, [T,
//	           T]) are never kept
//	attention  drops queries, keys, values, attention's output and log-sum-exp, and what QK-norm keeps; the fused
//	           projection, the rotation and attention are recomputed. Keeps both normalised inputs, gate and up: e·(2D
//	           + 2F) + 2f
//	whole      drops everything and keeps the input of its segment, f·D; the layers of the segment are rerun
//
// The first layers are whole, the last ones plain. Backward frees the plain ones before it reruns the first segment,
// so that the segment can use their memory. The last segment is never rerun, because that would save nothing.
//
// The default is none. Not worth its time if the activations fit. A larger micro-batch is rarely a reason, because
// gradients accumulate over micro-batches.

// A Layout assigns a treatment to each layer: the first Whole layers are whole, in segments of Segment layers; the
// next Attention layers drop their attention; the rest are plain. Narrow rounds the inputs that segments keep to BF16,
// so their layers compute with rounded inputs.
type Layout struct {
	Whole, Segment, Attention int
	Narrow                    bool
}

// Describe describes the layout for n layers.
func (l Layout) Describe(n int) string {
	text := fmt.Sprintf("keeps %d of %d layers", n-l.Whole-l.Attention, n)
	if l.Attention > 0 {
		text += fmt.Sprintf(", recomputes the attention of %d", l.Attention)
	}
	if l.Whole > 0 {
		text += fmt.Sprintf(", recomputes %d", l.Whole)
	}
	if l.Whole > 0 && l.Segment > 1 {
		text += fmt.Sprintf(" in segments of %d", l.Segment)
	}
	return text
}

// A Recompute is a strategy of memory.recompute. The zero value is none.
type Recompute struct {
	text   string // as it was given
	name   string
	n      int // of every:N
	budget int // of budget:BYTES
}

// ParseRecompute parses none, every_layer, every:N, sqrt, selective or budget:BYTES (such as 1.5GiB).
func ParseRecompute(text string) (Recompute, error) {
	name, value, given := strings.Cut(text, ":")
	r := Recompute{text: text, name: name}
	switch name {
	case "none", "every_layer", "sqrt", "selective":
		if given {
			return r, fmt.Errorf("%s takes no value", name)
		}
		if name == "none" {
			return Recompute{}, nil
		}
		return r, nil
	case "every":
		var err error
		if r.n, err = strconv.Atoi(value); err != nil || r.n < 1 {
			return r, fmt.Errorf("every:%s is not a number of layers, such as every:2", value)
		}
		return r, nil
	case "budget":
		budget, err := units.Bytes(value)
		if err != nil {
			return r, fmt.Errorf("budget:%s is not a size, such as budget:1.5GiB or budget:800MB", value)
		}
		r.budget = int(budget)
		return r, nil
	}
	return r, fmt.Errorf("unknown strategy %q", text)
}

// String returns the strategy as it was given.
func (r Recompute) String() string { return cmp.Or(r.text, "none") }

// MarshalText implements encoding.TextMarshaler.
func (r Recompute) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Recompute) UnmarshalText(text []byte) error {
	strategy, err := ParseRecompute(string(text))
	if err == nil {
		*r = strategy
	}
	return err
}

// Rerun reports whether the strategy itself fixes whole segments that are rerun.
func (r Recompute) Rerun() bool {
	return r.name == "every_layer" || r.name == "every" || r.name == "sqrt"
}

// Segments reports whether the strategy can rerun whole segments from their inputs.
func (r Recompute) Segments() bool { return r.Rerun() || r.NeedsFit() }

// Segment returns N of every:N, 0 for the other strategies.
func (r Recompute) Segment() int { return r.n }

// NeedsFit reports whether the layout depends on the size of the activations; then Fit computes it.
func (r Recompute) NeedsFit() bool { return r.name == "budget" }

// Layout returns the layout for a model of n layers. It panics if the strategy needs Fit.
func (r Recompute) Layout(n int) Layout {
	segment := 1
	switch r.name {
	case "":
		return Layout{}
	case "selective":
		return Layout{Attention: n}
	case "every":
		segment = r.n
	case "sqrt":
		segment = int(math.Round(math.Sqrt(float64(n))))
	case "budget":
		panic("model: a budget has no layout before Fit")
	}
	return Layout{Whole: (n - 1) / segment * segment, Segment: segment}
}

// SetRecompute changes which layers backward recomputes, from the next forward pass on.
func (m *Decoder) SetRecompute(l Layout) {
	m.Config.Recompute = l
	m.wrap()
}

// Fit returns the layout with the least recomputation among those whose activations (Footprint.Keep of training) fit
// the budget. The inputs of segments count unless they are stored elsewhere. If no layout fits, the error names the
// smallest possible size.
func (r Recompute) Fit(c Config, p precision.Policy, rows, tokens int, elsewhere bool) (Layout, error) {
	cost, m := newKeepCost(c, p, rows, tokens), Outline(c, p)
	if elsewhere {
		cost.input = 0
	}
	var best Layout
	least, bestCost := math.MaxInt, math.Inf(1)
	for _, l := range layouts(c.Layers) {
		room := r.budget - cost.peak(Layout{Whole: l.Whole, Segment: l.Segment}, c.Layers)
		if room < 0 { // number of further layers that must drop their attention
			l.Attention = min((-room+cost.layer-cost.lean-1)/(cost.layer-cost.lean), c.Layers-l.Whole)
		}
		peak := cost.peak(l, c.Layers)
		// rerunning the attention needs memory as well
		for peak > r.budget && l.Attention > 0 && l.Attention < c.Layers-l.Whole {
			l.Attention++
			peak = cost.peak(l, c.Layers)
		}
		least = min(least, peak)
		if time := m.recomputedFLOPs(l, tokens); peak <= r.budget && time < bestCost {
			best, bestCost = l, time
		}
	}
	if math.IsInf(bestCost, 1) {
		return best, fmt.Errorf("a budget of %s is too small for the activations of a micro-batch: the smallest "+
			"layout takes %s", mebibytes(r.budget), mebibytes(least))
	}
	return best, nil
}

func mebibytes(n int) string { return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20)) }

// layouts lists the ways to rerun n layers in equal segments, except for the last segment.
func layouts(n int) []Layout {
	list := []Layout{{}}
	for segment := 1; segment < n && segment <= 64; segment++ {
		for whole := segment; whole < n; whole += segment {
			list = append(list, Layout{Whole: whole, Segment: segment})
		}
	}
	return list
}

// keepCost holds the bytes that the parts of a model keep.
type keepCost struct {
	layer, lean int // a plain layer; a layer without its attention
	attention   int // what the attention keeps during its backward
	input       int // of a segment
	last, rest  int // the final norm; everything else
}

// newKeepCost measures models of one and two layers. If some layers have gates, short convolutions or separate
// projections for global tokens, all measured layers have them, because such layers keep the most.
func newKeepCost(c Config, p precision.Policy, rows, tokens int) keepCost {
	if most := cmp.Or(c.mostGates(), c.mostGlobal()); most != nil {
		c.Attention = sparse.Patterns{most}
	}
	keep := func(layers int, l Layout) int {
		c.Layers, c.Recompute = layers, l
		return Measure(c, p, rows, tokens, true).Keep
	}
	one, two := keep(1, Layout{}), keep(2, Layout{})
	leanOne, leanTwo := keep(1, Layout{Attention: 1}), keep(2, Layout{Attention: 2})
	sizes := tensor.NewMeasure("")
	sizes.New(p.Stream, rows*tokens, c.Dim)
	k := keepCost{layer: two - one, lean: leanTwo - leanOne, input: sizes.Used()}
	sizes.New(p.Activation, rows*tokens, c.Dim)
	sizes.New(p.Master, rows*tokens)
	k.last = sizes.Used() - k.input
	k.rest = one - k.layer - k.last
	k.attention = leanOne - k.lean - k.last - k.rest
	return k
}

// peak returns the largest number of bytes that a model of n layers keeps at one time: at the end of the forward
// pass, or after the rerun of the last attention or of a segment.
func (k keepCost) peak(l Layout, n int) int {
	plain, segments := n-l.Whole-l.Attention, 0
	peak := 0
	for from := 0; from < l.Whole; from += l.Segment {
		segments++
		peak = max(peak, segments*k.input+min(l.Segment, l.Whole-from)*k.layer)
	}
	lean := segments*k.input + l.Attention*k.lean
	peak = max(peak, lean+plain*k.layer+k.last)
	if l.Attention > 0 {
		again := lean + k.attention
		if plain == 0 {
			again += k.last
		}
		peak = max(peak, again)
	}
	return k.rest + peak
}
