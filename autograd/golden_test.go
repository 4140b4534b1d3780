package autograd

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/isa"
	"anneal/tensor"
)

// golden is one operation computed by PyTorch in float64 (testdata/make_ops.py).
type golden struct {
	Name    string
	Op      string
	Attrs   map[string]float64
	Tensors map[string]struct {
		Shape []int
		Data  []float64
	}
}

// rig is a tape under test: of float64 unless said otherwise.
type rig struct {
	*Tape
	t testing.TB
}

func newRig(t testing.TB) *rig {
	t.Helper()
	tier, err := isa.Choose()
	if err != nil {
		t.Fatal(err)
	}
	return newRigOf(t, tier, Types{
		Stream: tensor.F64, Activation: tensor.F64, Operand: tensor.F64, Stat: tensor.F64,
	})
}

// newRigOf is a tape of any types on the kernels of any tier.
func newRigOf(t testing.TB, tier isa.Tier, types Types) *rig {
	t.Helper()
	dev := cpu.NewTier(tier, 1)
	t.Cleanup(dev.Close)
	arena := func(name string) *tensor.Arena {
		a, err := tensor.NewArena(name, 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		return a
	}
	r := &rig{NewTape(dev, types, arena("keep"), arena("temp")), t}
	r.Reset(true)
	return r
}

// leaf returns a variable with the given values, as if an earlier operation had made it.
func (r *rig) leaf(data []float64, shape ...int) *Var {
	v := r.wrap(r.keep.New(r.Types.Stream, shape...))
	for i, x := range data {
		v.Value.SetFloat64(i, x)
	}
	return v
}

func param(data []float64, shape ...int) *Param {
	return &Param{
		Value: *tensor.Of(append([]float64(nil), data...), shape...),
		Grad:  *tensor.Of(make([]float64, len(data)), shape...),
	}
}

func integers(data []float64) *tensor.Tensor {
	out := make([]int32, len(data))
	for i, x := range data {
		out[i] = int32(x)
	}
	return tensor.Of(out)
}

// backward seeds the gradient of out with dy and runs the tape.
func (r *rig) backward(out *Var, dy []float64) {
	g, _ := r.gradOf(out)
	copy(g.F64(), dy)
	r.Backward()
}

func (r *rig) equal(what string, got, want []float64) {
	r.t.Helper()
	if len(got) != len(want) {
		r.t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-12*(1+math.Abs(want[i])) {
			r.t.Fatalf("%s[%d] = %.17g, want %.17g", what, i, got[i], want[i])
		}
	}
}

// ropeTables returns cos and sin [positions, e/2] for angles p·θ^(−2i/e).
func ropeTables(positions, e int, theta float64) (cos, sin *tensor.Tensor) {
	c, s := make([]float64, positions*e/2), make([]float64, positions*e/2)
	for i := range c {
		p, k := i/(e/2), i%(e/2)
		s[i], c[i] = math.Sincos(float64(p) * math.Pow(theta, -2*float64(k)/float64(e)))
	}
	return tensor.Of(c, positions, e/2), tensor.Of(s, positions, e/2)
}

func TestOperationsMatchPyTorch(t *testing.T) {
	data, err := os.ReadFile("testdata/ops.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []golden }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	checks := map[string]func(*rig, golden){
		"rmsnorm": checkRMSNorm, "linear": checkLinear, "linear_bias": checkLinearBias, "layernorm": checkLayerNorm,
		"gelu": checkGELU, "rope": checkRoPE, "attention": checkAttention, "qk_norm_rope": checkQKNormRoPE,
		"swiglu": checkSwiGLU, "geglu": checkGeGLU, "relu_squared": checkReLUSquared, "mix_streams": checkMixStreams,
		"add_values": checkAddValues, "embedding": checkEmbedding,
		"head_cross_entropy": checkHeadLoss,
		"cross_entropy":      checkCrossEntropy,
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			check, ok := checks[c.Op]
			if !ok {
				t.Fatalf("no check for operation %q", c.Op)
			}
			check(newRig(t), c)
		})
	}
}

func checkRMSNorm(r *rig, c golden) {
	x, g := c.Tensors["x"], c.Tensors["gain"]
	in, gain := r.leaf(x.Data, x.Shape...), param(g.Data, g.Shape...)
	y := r.RMSNorm(in, gain, c.Attrs["eps"])
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dx", in.grad.F64(), c.Tensors["dx"].Data)
	r.equal("dgain", gain.Grad.F64(), c.Tensors["dgain"].Data)
}

func checkLinear(r *rig, c golden) {
	x, w := c.Tensors["x"], c.Tensors["w"]
	in, weight := r.leaf(x.Data, x.Shape...), param(w.Data, w.Shape...)
	y := r.Linear(in, weight)
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dx", in.grad.F64(), c.Tensors["dx"].Data)
	r.equal("dw", weight.Grad.F64(), c.Tensors["dw"].Data)

	// The same product added to a stream of zeros has the same gradients.
	r.Reset(true)
	in, weight = r.leaf(x.Data, x.Shape...), param(w.Data, w.Shape...)
	stream := r.leaf(make([]float64, len(c.Tensors["y"].Data)), c.Tensors["y"].Shape...)
	y = r.AddBranch(stream, in, weight, Drop{}, nil)
	r.equal("sum", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dstream", stream.grad.F64(), c.Tensors["dy"].Data)
	r.equal("dx of sum", in.grad.F64(), c.Tensors["dx"].Data)
	r.equal("dw of sum", weight.Grad.F64(), c.Tensors["dw"].Data)
}

// withValueHead lays heads [N, H, E] out as a fused projection of H query heads, one key head and one value head of
// zeros.
func withValueHead(x []float64, rows, heads, e int) []float64 {
	out := make([]float64, 0, rows*(heads+2)*e)
	for i := range rows {
		out = append(out, x[i*heads*e:(i+1)*heads*e]...)
		out = append(out, make([]float64, 2*e)...)
	}
	return out
}

// queryHeads is the reverse: the first H heads of each row.
func queryHeads(x []float64, rows, heads, e int) []float64 {
	var out []float64
	for i := range rows {
		out = append(out, x[i*(heads+2)*e:][:heads*e]...)
	}
	return out
}

func checkRoPE(r *rig, c golden) {
	x := c.Tensors["x"]
	rows, heads, e := x.Shape[0]*x.Shape[1], x.Shape[2], x.Shape[3]
	layout := device.Heads{Q: heads, KV: 1, Size: e}
	cos, sin := ropeTables(int(slices.Max(c.Tensors["pos"].Data))+1, e, c.Attrs["theta"])
	seq := &Sequence{Pos: *integers(c.Tensors["pos"].Data)}
	in := r.leaf(withValueHead(x.Data, rows, heads, e), rows, layout.Cols())
	y := r.RoPE(in, cos, sin, layout, seq)
	r.equal("y", queryHeads(y.Value.F64(), rows, heads, e), c.Tensors["y"].Data)
	r.backward(y, withValueHead(c.Tensors["dy"].Data, rows, heads, e))
	r.equal("dx", queryHeads(in.grad.F64(), rows, heads, e), c.Tensors["dx"].Data)
}

func checkQKNormRoPE(r *rig, c golden) {
	x := c.Tensors["x"]
	rows, heads, e := x.Shape[0]*x.Shape[1], x.Shape[2], x.Shape[3]
	layout := device.Heads{Q: heads, KV: 1, Size: e}
	cos, sin := ropeTables(int(slices.Max(c.Tensors["pos"].Data))+1, e, c.Attrs["theta"])
	seq := &Sequence{Pos: *integers(c.Tensors["pos"].Data)}
	g := c.Tensors["gain"]
	gainQ, gainK := param(g.Data, e), param(g.Data, e)
	in := r.leaf(withValueHead(x.Data, rows, heads, e), rows, layout.Cols())
	y := r.RoPE(r.QKNorm(in, gainQ, gainK, layout, c.Attrs["eps"]), cos, sin, layout, seq)
	r.equal("y", queryHeads(y.Value.F64(), rows, heads, e), c.Tensors["y"].Data)
	r.backward(y, withValueHead(c.Tensors["dy"].Data, rows, heads, e))
	r.equal("dx", queryHeads(in.grad.F64(), rows, heads, e), c.Tensors["dx"].Data)
	r.equal("dgain", gainQ.Grad.F64(), c.Tensors["dgain"].Data)
}

// fuse interleaves q [N, H, E], k and v [N, K, E] into the columns of one projection.
func fuse(rows int, h device.Heads, q, k, v []float64) []float64 {
	var out []float64
	nq, nkv := h.Q*h.Size, h.KV*h.Size
	for i := range rows {
		out = append(out, q[i*nq:][:nq]...)
		out = append(out, k[i*nkv:][:nkv]...)
		out = append(out, v[i*nkv:][:nkv]...)
	}
	return out
}

func checkAttention(r *rig, c golden) {
	q := c.Tensors["q"]
	rows, tokens := q.Shape[0]*q.Shape[1], q.Shape[1]
	h := device.Heads{Q: int(c.Attrs["q_heads"]), KV: int(c.Attrs["kv_heads"]), Size: int(c.Attrs["head_dim"])}
	seq := &Sequence{Mask: device.Mask{Len: tokens}}
	if start, ok := c.Tensors["doc_start"]; ok {
		seq.Mask.Start = integers(start.Data)
	}
	in := r.leaf(fuse(rows, h, q.Data, c.Tensors["k"].Data, c.Tensors["v"].Data), rows, h.Cols())
	y := r.Attention(in, h, seq.Mask)
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dqkv", in.grad.F64(), fuse(rows, h, c.Tensors["dq"].Data, c.Tensors["dk"].Data, c.Tensors["dv"].Data))
}

func checkSwiGLU(r *rig, c golden) {
	x := c.Tensors["x"]
	in := r.leaf(x.Data, x.Shape...)
	y := r.SwiGLU(in)
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dx", in.grad.F64(), c.Tensors["dx"].Data)
}

func checkGeGLU(r *rig, c golden) {
	x := c.Tensors["x"]
	in := r.leaf(x.Data, x.Shape...)
	y := r.GeGLU(in)
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dx", in.grad.F64(), c.Tensors["dx"].Data)
}

func checkReLUSquared(r *rig, c golden) {
	x := c.Tensors["x"]
	in := r.leaf(x.Data, x.Shape...)
	y := r.ReLUSquared(in)
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dx", in.grad.F64(), c.Tensors["dx"].Data)
}

func checkMixStreams(r *rig, c golden) {
	x := c.Tensors["x"]
	w1, w2 := param(c.Tensors["w1"].Data, 2), param(c.Tensors["w2"].Data, 2)
	in := r.leaf(x.Data, x.Shape...)
	first := r.Remember(in)
	y := r.MixStreams(r.MixStreams(in, first, w1), first, w2)
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dx", in.grad.F64(), c.Tensors["dx"].Data)
	r.equal("dw1", w1.Grad.F64(), c.Tensors["dw1"].Data)
	r.equal("dw2", w2.Grad.F64(), c.Tensors["dw2"].Data)
}

func checkAddValues(r *rig, c golden) {
	x, w := c.Tensors["qkv"], c.Tensors["table"]
	table, weight := param(w.Data, w.Shape...), param(c.Tensors["weight"].Data, 1)
	in := r.leaf(x.Data, x.Shape...)
	y := r.AddValues(in, table, weight, integers(c.Tensors["ids"].Data), device.Heads{Q: 2, KV: 1, Size: 3})
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dqkv", in.grad.F64(), c.Tensors["dqkv"].Data)
	r.equal("dtable", table.Grad.F64(), c.Tensors["dtable"].Data)
	r.equal("dweight", weight.Grad.F64(), c.Tensors["dweight"].Data)
}

func checkEmbedding(r *rig, c golden) {
	w := c.Tensors["table"]
	table := param(w.Data, w.Shape...)
	y := r.Embedding(table, integers(c.Tensors["ids"].Data))
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dtable", table.Grad.F64(), c.Tensors["dtable"].Data)
}

// The fixture scales the loss by 1/targets; the tape's gradients are those of the sum.
func checkHeadLoss(r *rig, c golden) {
	h, w := c.Tensors["hidden"], c.Tensors["head"]
	in, head := r.leaf(h.Data, h.Shape...), param(w.Data, w.Shape...)
	losses, logZ := tensor.Of(make([]float64, h.Shape[0])), tensor.Of(make([]float64, h.Shape[0]))
	o := device.LossOptions{Softcap: c.Attrs["softcap"], ZLoss: c.Attrs["z_loss"], LogZ: logZ}
	r.HeadLoss(in, head, integers(c.Tensors["targets"].Data), losses, o)
	r.equal("loss", []float64{r.Device.Sum(losses)}, c.Tensors["loss"].Data)
	if z, ok := c.Tensors["z"]; ok {
		r.equal("z", []float64{o.ZLoss * new(device.Squares).Sum(r.Device, logZ)}, z.Data)
	}
	r.Backward()
	scaled := func(g []float64) []float64 {
		out := make([]float64, len(g))
		for i := range g {
			out[i] = g[i] * c.Tensors["dloss"].Data[0]
		}
		return out
	}
	r.equal("dhidden", scaled(in.grad.F64()), c.Tensors["dhidden"].Data)
	r.equal("dhead", scaled(head.Grad.F64()), c.Tensors["dhead"].Data)
}

func checkCrossEntropy(r *rig, c golden) {
	z := c.Tensors["logits"]
	logits := tensor.Of(append([]float64(nil), z.Data...), z.Shape...)
	losses := tensor.Of(make([]float64, z.Shape[0]))
	r.Device.CrossEntropy(losses, logits, logits, integers(c.Tensors["targets"].Data), device.LossOptions{})
	r.equal("loss", []float64{r.Device.Sum(losses)}, c.Tensors["loss"].Data)
	for i := range logits.F64() {
		logits.F64()[i] *= c.Tensors["dloss"].Data[0]
	}
	r.equal("dlogits", logits.F64(), c.Tensors["dlogits"].Data)
}
