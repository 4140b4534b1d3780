package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"anneal/autograd"
	"anneal/internal/units"
	"anneal/precision"
	"anneal/tensor"
)

// Activation checkpointing (Chen et al. 2016, arXiv 1604.06174; selective: Korthikanti et al. 2022, arXiv 2205.05198):
// what backward needs of some layers is not kept but computed again. Gradients keep their bits.
//
// In every strategy a layer is treated in one of three ways. Per token, with e bytes an activation and f bytes a number of
// the residual stream (BF16: 2 and 4), Q = (H+2K)·E, of what a plain layer keeps, e·(2D + Q + HE + 2F) + f·(H+2):
//
//	plain      keeps it all. What is cheap to compute again was never in it: norms' and activation functions' outputs, [T, T]
//	attention  drops queries, keys, values, attention's output and log-sum-exp, and what QK-norm keeps; the joint projection,
//	           the rotation and attention run again. Keeps both normalised inputs, gate and up: e·(2D + 2F) + 2f
//	whole      drops all of it and keeps the input of its segment, f·D; the layers of the segment run again
//
// The first layers are whole, the last are plain. Backward frees the plain ones before it runs the first segment again, so
// that the segment finds its room there, and the last segment is never run again: it would cost time and save nothing.
//
// The default is none. Not worth its time as long as the activations fit; a larger micro-batch rarely is a reason, since
// gradients add up over micro-batches.

// A Layout says how each layer is treated: the first Whole in segments of Segment layers, the next Attention, the rest plain.
type Layout struct{ Whole, Segment, Attention int }

// Describe says what a layout of n layers keeps.
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

// A Recompute is a strategy: memory.recompute, parsed.
type Recompute struct {
	name   string
	n      int // of every:N
	budget int // of budget:BYTES
}

// ParseRecompute reads none, every_layer, every:N, sqrt, selective or budget:BYTES (such as 1.5GiB).
func ParseRecompute(text string) (Recompute, error) {
	name, value, given := strings.Cut(text, ":")
	r := Recompute{name: name}
	switch name {
	case "none", "every_layer", "sqrt", "selective":
		if given {
			return r, fmt.Errorf("%s takes no value", name)
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

// Segment returns N of every:N, 0 for the other strategies.
func (r Recompute) Segment() int { return r.n }

// NeedsFit reports whether the layout depends on what the activations take: then Fit makes it.
func (r Recompute) NeedsFit() bool { return r.name == "budget" }

// Layout returns how the strategy treats a model of n layers. It panics for one that needs Fit.
func (r Recompute) Layout(n int) Layout {
	segment := 1
	switch r.name {
	case "none", "":
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

// unit is consecutive blocks that backward runs again together.
type unit struct{ blocks []Block }

// Forward runs the blocks.
func (u *unit) Forward(t *autograd.Tape, x *autograd.Var, seq *autograd.Sequence) *autograd.Var {
	for _, b := range u.blocks {
		x = t.Block(b, x, seq)
	}
	return x
}

// SetRecompute changes what backward runs again, from the next forward pass on.
func (m *Decoder) SetRecompute(l Layout) {
	m.Config.Recompute, m.units = l, nil
	for _, b := range m.blocks {
		b.shared().attention.again = false
	}
	for from := 0; from < l.Whole; from += l.Segment {
		m.units = append(m.units, &unit{m.blocks[from:min(from+l.Segment, l.Whole)]})
	}
	for _, b := range m.blocks[l.Whole : l.Whole+l.Attention] {
		b.shared().attention.again = true
	}
}

// Fit returns the layout that runs the least again of those whose activations (Footprint.Keep of training) fit the budget,
// or an error that names the least that any takes.
func (r Recompute) Fit(c Config, p precision.Policy, rows, tokens int) (Layout, error) {
	cost, m := newKeepCost(c, p, rows, tokens), Outline(c, p)
	var best Layout
	least, bestCost := math.MaxInt, math.Inf(1)
	for _, l := range layouts(c.Layers) {
		room := r.budget - cost.peak(Layout{Whole: l.Whole, Segment: l.Segment}, c.Layers)
		if room < 0 { // so many more must not keep their attention
			l.Attention = min((-room+cost.layer-cost.lean-1)/(cost.layer-cost.lean), c.Layers-l.Whole)
		}
		peak := cost.peak(l, c.Layers)
		for peak > r.budget && l.Attention > 0 && l.Attention < c.Layers-l.Whole { // its rerun needs room as well
			l.Attention++
			peak = cost.peak(l, c.Layers)
		}
		least = min(least, peak)
		if time := m.recomputedFLOPs(l, tokens); peak <= r.budget && time < bestCost {
			best, bestCost = l, time
		}
	}
	if math.IsInf(bestCost, 1) {
		return best, fmt.Errorf("a budget of %s is too small for the activations of a micro-batch: the smallest layout takes %s", mebibytes(r.budget), mebibytes(least))
	}
	return best, nil
}

func mebibytes(n int) string { return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20)) }

// layouts lists the ways to run whole layers of n again in equal segments; the last segment is not.
func layouts(n int) []Layout {
	list := []Layout{{}}
	for segment := 1; segment < n && segment <= 64; segment++ {
		for whole := segment; whole < n; whole += segment {
			list = append(list, Layout{Whole: whole, Segment: segment})
		}
	}
	return list
}

// keepCost is what the parts of a model keep, in bytes of the arena.
type keepCost struct {
	layer, lean int // a plain layer; one without its attention
	attention   int // what that keeps while its backward lasts
	input       int // of a segment
	last, rest  int // the final norm; everything else
}

// newKeepCost measures models of one and two layers, all with gates if some have them: those keep most.
func newKeepCost(c Config, p precision.Policy, rows, tokens int) keepCost {
	if c.gatedLinear() {
		c.Attention = "linear:gated"
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

// peak returns the most that a model of n layers keeps at one time: at the end of the forward pass, or when the last
// attention or a segment has been run again.
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
