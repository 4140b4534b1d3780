package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"anneal/attention"
	"anneal/chart"
	"anneal/device"
	"anneal/tensor"
)

// AttentionOptions says what BenchAttention measures: every pattern on rows of every length.
type AttentionOptions struct {
	Patterns       []string // in the syntax of package attention
	Lengths        []int    // tokens per row
	Heads, HeadDim int      // there are as many key-value heads as query heads
	DType          tensor.DType
	Seconds        float64 // time per case
}

// AttentionCase is the measurement of one pattern on one row, forward and backward.
type AttentionCase struct {
	Pattern         string  `json:"pattern"` // with all its options
	Length          int     `json:"length"`
	Heads           int     `json:"heads"` // fewer than requested where those would exceed the time per case
	Seconds         float64 `json:"seconds"`
	ForwardSeconds  float64 `json:"forward_seconds"`
	BackwardSeconds float64 `json:"backward_seconds"`
	Runs            int     `json:"runs"`
	TensorBytes     int     `json:"tensor_bytes"`  // queries, keys, values, outputs, log-sum-exps, and the gradients
	ScratchBytes    int     `json:"scratch_bytes"` // of the kernels
	PeakBytes       int     `json:"peak_bytes"`

	// Not for linear attention: the pairs of query and key as a fraction of those of full attention, and their
	// operations (4·E forward and 10·E backward per pair) relative to the peak measured just before.
	Density        float64 `json:"density,omitempty"`
	FLOPs          float64 `json:"flops,omitempty"`
	GFLOPS         float64 `json:"gflops,omitempty"`
	FractionOfPeak float64 `json:"fraction_of_peak,omitempty"`

	// time per head as a fraction of that of full attention on the same row
	OfDense   float64 `json:"of_dense,omitempty"`
	OverDense float64 `json:"over_dense,omitempty"` // OfDense divided by Density: 1 means no overhead
}

// AttentionGrowth describes how the time per head grows with the length of a row: as the power Exponent, fitted to
// the longer half of the lengths.
type AttentionGrowth struct {
	Pattern  string  `json:"pattern"`
	From     int     `json:"from"` // shortest row in the fit
	Exponent float64 `json:"exponent"`
}

// AttentionReport compares attention patterns with the peak of the machine and with full attention.
type AttentionReport struct {
	Device     string            `json:"-"` // its name
	Tier       string            `json:"tier"`
	Threads    int               `json:"threads"`
	DType      string            `json:"dtype"`
	HeadDim    int               `json:"head_dim"`
	PeakGFLOPS float64           `json:"peak_gflops"` // for products of DType; the highest of all measurements
	Cases      []AttentionCase   `json:"cases"`
	Growth     []AttentionGrowth `json:"growth"`

	patterns int // cases per length
}

// Attention measures patterns length by length, from the shortest, and calls each with every case. The fastest run of a
// case counts, which reduces the influence of other work on the machine. The peak is measured anew before each case,
// because the clock varies; cases are compared by their fraction of it. A case whose single run would exceed the time
// per case gets fewer heads. One head is measured however long it takes.
//
// open returns the device for a case, which is closed after the case: only a device of its own can measure the scratch
// memory of the case.
func Attention(open func() device.Device, o AttentionOptions, each func(AttentionCase)) (*AttentionReport, error) {
	r := &AttentionReport{}
	r.DType, r.HeadDim, r.patterns = o.DType.String(), o.HeadDim, len(o.Patterns)
	for _, length := range slices.Compact(slices.Sorted(slices.Values(o.Lengths))) {
		var dense AttentionCase
		var densePeak float64
		for _, text := range o.Patterns {
			dev := open()
			r.Device, r.Tier, r.Threads = dev.Name(), dev.Kernels(), dev.Threads()
			peak := dev.Peak(o.DType)
			r.PeakGFLOPS = max(r.PeakGFLOPS, peak)
			c, err := measureAttention(dev, o, text, length, peak)
			dev.Close()
			peak = cmp.Or(peak, 1) // without a peak, times are compared directly
			if err != nil {
				return nil, err
			}
			if c.Pattern == "full" {
				dense, densePeak = c, peak
			}
			if dense.Seconds > 0 {
				c.OfDense = c.Seconds * peak / float64(c.Heads) / (dense.Seconds * densePeak / float64(dense.Heads))
			}
			if dense.Seconds > 0 && c.Density > 0 {
				c.OverDense = c.OfDense / c.Density
			}
			r.Cases = append(r.Cases, c)
			each(c)
		}
	}
	r.growth()
	return r, nil
}

// Shared opens one device for all cases: opening a card takes longer than a case.
func Shared(dev device.Device) (open func() device.Device) {
	return func() device.Device { return kept{dev} }
}

// kept wraps a device that stays open: its Close does nothing.
type kept struct{ device.Device }

func (kept) Close() {}

// growth fits the exponents of the patterns.
func (r *AttentionReport) growth() {
	lengths := len(r.Cases) / r.patterns
	if lengths < 2 {
		return
	}
	for i := range r.patterns {
		var points []AttentionCase
		for n := min(lengths/2, lengths-2); n < lengths; n++ {
			points = append(points, r.Cases[n*r.patterns+i])
		}
		r.Growth = append(r.Growth, AttentionGrowth{points[0].Pattern, points[0].Length, exponent(points)})
	}
}

// exponent is the least-squares slope of log time per head over log length.
func exponent(points []AttentionCase) float64 {
	var x, y, xx, xy float64
	for _, c := range points {
		lx, ly := math.Log(float64(c.Length)), math.Log(c.Seconds/float64(c.Heads))
		x, y, xx, xy = x+lx, y+ly, xx+lx*lx, xy+lx*ly
	}
	n := float64(len(points))
	return (n*xy - x*y) / (n*xx - x*x)
}

// measureAttention measures one case.
func measureAttention(dev device.Device, o AttentionOptions, text string, length int,
	peak float64) (AttentionCase, error) {
	c := AttentionCase{Pattern: text, Length: length, Heads: o.Heads}
	run := attentionRun{dev: dev}
	pattern, err := attention.Parse(text)
	if err != nil {
		return c, err
	}
	if linear, ok := pattern.(attention.Linear); ok {
		run.isLinear, run.gated, run.heads.Rule = true, linear.HasGates(), linear.Rule
	} else {
		pattern = pattern.Resolve(length, 1)
		for c.Pattern = pattern.String(); ; c.Heads /= 2 {
			layout, err := attention.Compile(pattern, length, c.Heads, 0)
			if err != nil {
				return c, err
			}
			count := attention.Measure(layout, length, c.Heads)
			run.mask.Layout = layout
			c.Density, c.FLOPs = count.Density, 14*float64(o.HeadDim)*float64(count.Pairs)
			if c.Heads == 1 || peak == 0 || c.FLOPs < o.Seconds*peak*1e9/2 {
				break
			}
		}
	}
	run.heads.Q, run.heads.KV, run.heads.Size, run.mask.Len = c.Heads, c.Heads, o.HeadDim, length
	arena, err := run.layOut(o.DType)
	if err != nil {
		return c, fmt.Errorf("%s on %d tokens: %w", c.Pattern, length, err)
	}
	defer arena.Close()
	run.measure(&c, time.Duration(o.Seconds*float64(time.Second)))
	if err := run.dev.Wait(); err != nil {
		return c, err
	}
	c.TensorBytes, c.ScratchBytes = arena.Used(), dev.ScratchBytes()
	c.PeakBytes = c.TensorBytes + c.ScratchBytes
	c.GFLOPS = c.FLOPs / c.Seconds / 1e9
	if peak > 0 {
		c.FractionOfPeak = c.GFLOPS / peak
	}
	return c, nil
}

// attentionRun is one row with its tensors and kernels.
type attentionRun struct {
	dev      device.Device
	isLinear bool
	gated    bool
	heads    device.Heads
	mask     device.Mask

	qkv, out, lse, dout, dqkv tensor.Tensor
	gates, dgates             *tensor.Tensor // nil if the pattern has none
}

// layOut creates the tensors of a row.
func (a *attentionRun) layOut(dtype tensor.DType) (*tensor.Arena, error) {
	make := func(arena *tensor.Arena) {
		cols := a.heads.Q * a.heads.Size
		a.qkv, a.dqkv = arena.New(dtype, a.mask.Len, a.heads.Cols()), arena.New(dtype, a.mask.Len, a.heads.Cols())
		a.out, a.dout = arena.New(dtype, a.mask.Len, cols), arena.New(dtype, a.mask.Len, cols)
		a.lse = arena.New(tensor.F32, a.heads.Q, a.mask.Len)
		if a.gated {
			gates, dgates := arena.New(tensor.F32, a.mask.Len, a.heads.GateCols()),
				arena.New(tensor.F32, a.mask.Len, a.heads.GateCols())
			a.gates, a.dgates = &gates, &dgates
		}
	}
	size := tensor.NewMeasure("attention")
	make(size)
	arena, err := a.dev.NewArena("attention", size.Used())
	if err != nil {
		return nil, err
	}
	make(arena)
	// fills the results too, so that their pages are touched before the timing
	for _, t := range []*tensor.Tensor{&a.qkv, &a.dout, &a.out, &a.dqkv, &a.lse} {
		fillWave(a.dev, t)
	}
	if a.gated {
		fillWave(a.dev, a.gates)
	}
	return arena, nil
}

// fillWave fills t with numbers of both signs up to 1, in a pattern that repeats every 1,021 values.
func fillWave(dev device.Memory, t *tensor.Tensor) {
	const period = 1021
	raw, size := make([]byte, t.Bytes()), t.DType().Size()
	host := tensor.View(t.DType(), raw, t.Len())
	n := min(period, t.Len())
	for i := range n {
		host.SetFloat64(i, math.Sin(float64(i*i)))
	}
	for done := n * size; done < len(raw); done *= 2 {
		copy(raw[done:], raw[:done])
	}
	dev.Write(t, raw)
}

// measure runs forward and backward for d. The first run touches the scratch memory, and counts only if it is long.
func (a *attentionRun) measure(c *AttentionCase, d time.Duration) {
	forward, backward := a.once()
	if forward+backward < 2*d {
		forward, backward = a.once()
	}
	c.Runs = 1
	for start := time.Now(); time.Since(start)+forward+backward < d; c.Runs++ {
		if f, b := a.once(); f+b < forward+backward {
			forward, backward = f, b
		}
	}
	c.ForwardSeconds, c.BackwardSeconds = forward.Seconds(), backward.Seconds()
	c.Seconds = c.ForwardSeconds + c.BackwardSeconds
}

// once runs and times forward and backward.
func (a *attentionRun) once() (forward, backward time.Duration) {
	begin := time.Now()
	a.forward()
	a.dev.Wait() // the device keeps an error for later
	middle := time.Now()
	a.backward()
	a.dev.Wait()
	return middle.Sub(begin), time.Since(middle)
}

func (a *attentionRun) forward() {
	if a.isLinear {
		a.dev.LinearAttention(&a.out, &a.lse, &a.qkv, a.gates, a.heads, a.mask)
		return
	}
	a.dev.Attention(&a.out, &a.lse, &a.qkv, a.heads, a.mask)
}

func (a *attentionRun) backward() {
	if a.isLinear {
		a.dev.LinearAttentionGrad(&a.dqkv, a.dgates, &a.dout, &a.out, &a.lse, &a.qkv, a.gates, a.heads, a.mask)
		return
	}
	a.dev.AttentionGrad(&a.dqkv, &a.dout, &a.out, &a.lse, &a.qkv, a.heads, a.mask)
}

// Chart draws the time per head over the length of the row.
func (r *AttentionReport) Chart() *chart.Chart {
	c := &chart.Chart{
		Title: "attention, forward and backward",
		X:     chart.Axis{Label: "tokens in a row", Log: true},
		Y:     chart.Axis{Label: "milliseconds per head", Log: true},
	}
	for i, m := range r.Cases {
		at := i % r.patterns
		if i < r.patterns {
			c.Series = append(c.Series, chart.Series{Name: m.Pattern, Style: chart.Both})
		}
		c.Series[at].X = append(c.Series[at].X, float64(m.Length))
		c.Series[at].Y = append(c.Series[at].Y, 1e3*m.Seconds/float64(m.Heads))
	}
	return c
}
