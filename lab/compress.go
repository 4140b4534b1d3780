package lab

import (
	"cmp"
	"context"
	"fmt"
	"unsafe"

	"anneal/compress"
	"anneal/config"
	"anneal/device"
	"anneal/model"
	"anneal/nn"
	"anneal/run"
	"anneal/tensor"
	"anneal/use"
)

// CompressOptions say how Compress makes the matrices of a model coarser or sparser; embeddings, head and gains do not
// change. Adapters are merged first.
type CompressOptions struct {
	Out   string // the run to make
	Grid  compress.Grid
	GPTQ  bool    // GPTQ: round so that products change little, with inputs from the training split
	Prune float64 // share of the weights of each matrix that becomes 0, the smallest first
	Whole string  // prune that share of whole Heads or Channels instead; "" for weights
	Of    [2]int  // keep Of[0] weights of each block of Of[1] instead, such as 2 of 4

	Data   string // the data set: its held-out text is scored, its training text makes the inputs
	Tokens int    // of the held-out text; 0: all
	Inputs int    // tokens of the training text, for GPTQ

	Threads    int
	OnPhase    func(what string)
	OnProgress func(done, total int64)
}

// The values of CompressOptions.Whole.
const (
	Heads    = "heads"
	Channels = "channels"
)

// Compressed holds the cost and the savings of a compression.
type Compressed struct {
	Run         string  `json:"run"`
	Matrices    int     `json:"matrices"`
	Weights     int64   `json:"weights"` // of the matrices
	Zeros       float64 `json:"zeros"`   // share of them
	Parameters  int64   `json:"parameters"`
	Before      float64 `json:"bits_per_byte_before"`
	After       float64 `json:"bits_per_byte_after"`
	BytesBefore float64 `json:"bytes_before"` // of all parameters in BF16
	BytesAfter  float64 `json:"bytes_after"`  // with the matrices in the grid's bits
	WeightsHash string  `json:"weights_hash"`

	Units  int `json:"units,omitempty"`        // whole heads or channels of a layer
	Pruned int `json:"pruned_units,omitempty"` // of these
}

// Compress rounds or prunes the matrices of a trained run, writes a run with the result, in FP32, and returns the
// losses on held-out text before and after.
func Compress(ctx context.Context, dir string, o CompressOptions) (*Compressed, error) {
	if err := run.CheckNewRun(o.Out); err != nil {
		return nil, err
	}
	r, err := use.OpenWith(dir, use.OpenOptions{Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	r.MergeAdapters()
	matrices := matricesOf(r.Model)
	c := &Compressed{Run: o.Out, Matrices: len(matrices), Parameters: r.Model.Count()}
	if c.Pruned, c.Units, err = o.wholeUnits(r.Model.Config); err != nil {
		return nil, err
	}
	for _, p := range matrices {
		if p.Value.DType() != tensor.F32 {
			return nil, config.Problem{
				Message: fmt.Sprintf("the weights of %s are in %v, and only those in f32 can be compressed", dir,
					p.Value.DType()), Try: "a run with precision = bf16 or fp32",
			}
		}
		c.Weights += int64(p.Value.Len())
	}
	o.OnPhase("the held-out text, as the model is")
	before, err := r.Evaluate(ctx, o.Data, o.Tokens, o.OnProgress)
	if err != nil {
		return nil, err
	}
	kept, err := o.prune(r.Model, matrices)
	if err != nil {
		return nil, err
	}
	if err := o.round(ctx, r, matrices); err != nil {
		return nil, err
	}
	o.OnPhase("the held-out text, compressed")
	after, err := r.Evaluate(ctx, o.Data, o.Tokens, o.OnProgress)
	if err != nil {
		return nil, err
	}
	c.Before, c.After = before.BitsPerByte, after.BitsPerByte
	c.count(matrices, kept, o.Grid)
	c.WeightsHash, err = r.WriteAs(o.Out, "anneal compress")
	return c, err
}

// wholeUnits returns how many heads or channels of a layer the share to prune is, of how many. A share that is none of
// them is a mistake.
func (o *CompressOptions) wholeUnits(m model.Config) (pruned, units int, err error) {
	if o.Whole == "" {
		return 0, 0, nil
	}
	if units = m.FFN; o.Whole == Heads {
		units = m.Heads
	}
	if pruned = compress.UnitsOf(units, o.Prune); pruned == 0 {
		err = config.Problem{
			Message: fmt.Sprintf("%.4g %% of the %s prunes nothing: a layer has %d", 100*o.Prune, o.Whole, units),
			Try:     fmt.Sprintf("%s:%v%%, which prunes one of them", o.Whole, compress.SmallestPercent(units)),
		}
	}
	return pruned, units, err
}

// matricesOf returns the hidden matrices of a model.
func matricesOf(m *model.Decoder) (list []*nn.Param) {
	for _, p := range m.Params() {
		if p.Role == nn.Matrix && p.Value.Rank() == 2 {
			list = append(list, p)
		}
	}
	return list
}

// A shape is the shape of a matrix without the rows and columns of pruned units, which a smaller layer would not have.
type shape struct{ rows, cols int }

// count counts the bytes of the model, and the weights that are 0.
func (c *Compressed) count(matrices []*nn.Param, kept map[*nn.Param]shape, g compress.Grid) {
	const narrow = 16 // bits of BF16
	zeros, bits := 0, narrow*(c.Parameters-c.Weights)
	for _, p := range matrices {
		if s := kept[p]; g.Bits > 0 {
			bits += g.MatrixBits(s.rows, s.cols)
		} else {
			bits += narrow * int64(s.rows*s.cols)
		}
		for _, x := range p.Value.F32() {
			if x == 0 {
				zeros++
			}
		}
	}
	c.Zeros = float64(zeros) / float64(c.Weights)
	c.BytesBefore, c.BytesAfter = narrow/8*float64(c.Parameters), float64(bits)/8
}

// prune prunes the matrices, and returns the remaining shape of each.
func (o *CompressOptions) prune(m *model.Decoder, matrices []*nn.Param) (map[*nn.Param]shape, error) {
	kept := map[*nn.Param]shape{}
	for _, p := range matrices {
		kept[p] = shape{p.Value.Rows(), p.Value.Cols()}
		switch {
		case o.Whole != "":
		case o.Of[1] > 0:
			compress.Of(p.Value.F32(), p.Value.Cols(), o.Of[0], o.Of[1])
		case o.Prune > 0:
			compress.Magnitude(p.Value.F32(), o.Prune)
		}
	}
	if o.Whole == "" {
		return kept, nil
	}
	return kept, o.pruneWhole(m, kept)
}

// pruneWhole prunes whole heads or channels of every layer. Keys and values of heads that share them stay.
func (o *CompressOptions) pruneWhole(m *model.Decoder, kept map[*nn.Param]shape) error {
	named := map[string]*nn.Param{}
	for p := range kept {
		named[p.Name] = p
	}
	for i := range m.Config.Layers {
		var in, out *nn.Param
		units := m.Config.Heads
		switch o.Whole {
		case Heads:
			in, out = named[fmt.Sprintf("layers.%d.attention.qkv", i)], named[fmt.Sprintf("layers.%d.attention.out", i)]
		case Channels:
			units = m.Config.FFN
			in = cmp.Or(named[fmt.Sprintf("layers.%d.mlp.gate_up", i)], named[fmt.Sprintf("layers.%d.mlp.up", i)])
			out = named[fmt.Sprintf("layers.%d.mlp.down", i)]
		}
		if in == nil || out == nil {
			return config.Problem{
				Message: fmt.Sprintf("layer %d has no %s that can be pruned: experts and latent attention have others",
					i, o.Whole), Try: "--prune 25%",
			}
		}
		var readers [][]float32
		at, reading := 0, 0 // rows
		for _, part := range in.Parts {
			rows := in.Value.F32()[at*m.Config.Dim:][:part.Rows*m.Config.Dim]
			if o.Whole == Channels || part.Name == "q" {
				readers, reading = append(readers, rows), reading+part.Rows
			}
			at += part.Rows
		}
		n := compress.Units(units, o.Prune, out.Value.F32(), out.Value.Cols(), readers...)
		a, b := kept[in], kept[out]
		kept[in] = shape{a.rows - n*reading/units, a.cols}
		kept[out] = shape{b.rows, b.cols - n*b.cols/units}
	}
	return nil
}

// round rounds the matrices.
func (o *CompressOptions) round(ctx context.Context, r *use.Trained, matrices []*nn.Param) error {
	if o.Grid.Bits == 0 {
		return nil
	}
	if !o.GPTQ {
		for _, p := range matrices {
			o.Grid.Nearest(p.Value.F32(), p.Value.Cols())
		}
		return nil
	}
	inputs, err := o.inputs(ctx, r, matrices)
	if err != nil {
		return err
	}
	o.OnPhase(fmt.Sprintf("rounding %d matrices", len(matrices)))
	for _, p := range matrices {
		h := inputs.of[at(&p.Value)]
		if h == nil {
			return config.Problem{
				Message: p.Name + " has no inputs of its own: gptq does not know the matrices of experts",
				Try:     "--method nearest",
			}
		}
		if err := o.Grid.GPTQ(p.Value.F32(), p.Value.Cols(), h); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// inputs passes training text through the model, and returns Σ x·xᵀ of the inputs x of each matrix. A model of
// precision fp8 computes in BF16 for it, because FP8 products read quantised copies of the matrices.
func (o *CompressOptions) inputs(ctx context.Context, r *use.Trained, matrices []*nn.Param) (*inputDevice, error) {
	o.OnPhase(fmt.Sprintf("the inputs of %d matrices, from %d tokens of the training text", len(matrices), o.Inputs))
	d := &inputDevice{of: map[unsafe.Pointer][]float64{}, wanted: map[unsafe.Pointer]int{}}
	for _, p := range matrices {
		d.wanted[at(&p.Value)] = p.Value.Len()
	}
	r.Through(func(below device.Device) device.Device { d.Device = below; return d })
	policy := r.Policy
	defer func() { r.Policy = policy }()
	r.Policy.FP8 = nil
	defer r.Through(func(device.Device) device.Device { return d.Device })
	_, err := r.EvaluateSplit(ctx, []config.Source{{Path: o.Data}}, true, o.Inputs, o.OnProgress)
	return d, err
}

func at(x *tensor.Tensor) unsafe.Pointer { return x.Pointer() }

// An inputDevice passes on every call, and sums x·xᵀ over the inputs x of products with some matrices.
type inputDevice struct {
	device.Device
	wanted map[unsafe.Pointer]int       // elements of a matrix; products with experts use parts of it
	of     map[unsafe.Pointer][]float64 // by the memory of the matrix: [cols, cols]
	sum    []float32
}

// MatMul implements device.Device.
func (d *inputDevice) MatMul(dst, a, b *tensor.Tensor, form device.Form, o device.MatMulOptions) {
	d.Device.MatMul(dst, a, b, form, o)
	if form != device.NT || d.wanted[b.Pointer()] != b.Len() {
		return
	}
	n := b.Cols()
	if len(d.sum) < n*n {
		d.sum = make([]float32, n*n)
	}
	own := tensor.Of(d.sum[:n*n], n, n)
	d.Device.MatMul(own, a, a, device.TN, device.MatMulOptions{Operand: tensor.F32})
	d.Device.Wait()
	h := d.of[b.Pointer()]
	if h == nil {
		h = make([]float64, n*n)
		d.of[b.Pointer()] = h
	}
	for i, x := range own.F32() {
		h[i] += float64(x)
	}
}
