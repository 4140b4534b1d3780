package autograd

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// normals returns n fixed normal numbers.
func normals(stream uint32, n int) []float64 {
	rng := tensor.NewRNG(1, tensor.PurposeData, stream)
	out := make([]float64, n)
	for i := range out {
		out[i] = rng.Normals(uint64(i / 4))[i%4]
	}
	return out
}

// mustPanic runs f and checks what its panic says.
func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if text := fmt.Sprint(recover()); !strings.Contains(text, want) {
			t.Errorf("panic %q does not say %q", text, want)
		}
	}()
	f()
}

func TestMisuseOfValuesPanics(t *testing.T) {
	const consumed = "used after an operation consumed it"
	w := param(normals(0, 64), 8, 8)
	t.Run("consumed by a sum", func(t *testing.T) {
		r := newRig(t)
		x, a := r.leaf(normals(1, 16), 2, 8), r.leaf(normals(2, 16), 2, 8)
		r.AddBranch(x, a, w, Drop{}, nil)
		mustPanic(t, consumed, func() { r.Linear(x, w) })
		mustPanic(t, consumed, func() { r.AddBranch(x, a, w, Drop{}, nil) })
	})
	t.Run("consumed by a rotation", func(t *testing.T) {
		r := newRig(t)
		heads := device.Heads{Q: 2, KV: 1, Size: 2}
		cos, sin := ropeTables(2, 2, 10)
		qkv := r.leaf(normals(1, 16), 2, 8)
		seq := &Sequence{Pos: *tensor.Of([]int32{0, 1}), Mask: device.Mask{Len: 2}}
		r.RoPE(qkv, cos, sin, heads, seq)
		mustPanic(t, consumed, func() { r.Attention(qkv, heads, seq.Mask) })
	})
	t.Run("temporary changed in place", func(t *testing.T) {
		r := newRig(t)
		h := r.RMSNorm(r.leaf(normals(1, 16), 2, 8), param(normals(2, 8), 8), 1e-5)
		mustPanic(t, "cannot be modified in place", func() { r.AddBranch(h, h, w, Drop{}, nil) })
	})
	t.Run("temporary out of a block", func(t *testing.T) {
		r := newRig(t)
		mustPanic(t, "only valid within the block", func() {
			r.Block(segment(func(x *Var) *Var { return r.RMSNorm(x, param(normals(2, 8), 8), 1e-5) }),
				r.leaf(normals(1, 16), 2, 8), nil)
		})
	})
	t.Run("second use of a gate", func(t *testing.T) {
		r := newRig(t)
		gu := r.leaf(normals(1, 16), 2, 8)
		r.SwiGLU(gu)
		y := r.SwiGLU(gu)
		g, _ := r.gradOf(y)
		copy(g.F64(), normals(3, 8))
		r.Backward() // the first result has no gradient: one use counts
		r.Reset(true)
		gu = r.leaf(normals(1, 16), 2, 8)
		for range 2 {
			g, _ := r.gradOf(r.SwiGLU(gu))
			copy(g.F64(), normals(3, 8))
		}
		mustPanic(t, "second use", r.Backward)
	})
	t.Run("backward without recording", func(t *testing.T) {
		r := newRig(t)
		r.Reset(false)
		mustPanic(t, "without gradients", r.Backward)
	})
}

// segment makes a Segment of a function.
type segment func(x *Var) *Var

func (s segment) Forward(_ *Tape, x *Var, _ *Sequence) *Var { return s(x) }

// Gradients are linear: those of a value with two uses are the sum of those of each use alone. Alone means that the
// other result has no gradient, and then neither has its weight.
func TestGradientsOfTwoUsesAddUp(t *testing.T) {
	const n, d = 3, 8
	run := func(first, second bool) (dx []float64, grads [3]*Param) {
		r := newRig(t)
		x, gain := r.leaf(normals(1, n*d), n, d), param(normals(2, d), d)
		w1, w2 := param(normals(3, 2*d), 2, d), param(normals(4, 5*d), 5, d)
		h := r.RMSNorm(x, gain, 1e-5)
		y, z := r.Linear(h, w1), r.Linear(h, w2)
		if first {
			g, _ := r.gradOf(y)
			copy(g.F64(), normals(5, n*2))
		}
		if second {
			g, _ := r.gradOf(z)
			copy(g.F64(), normals(6, n*5))
		}
		r.Backward()
		return x.grad.F64(), [3]*Param{gain, w1, w2}
	}
	both, grads := run(true, true)
	a, gradsA := run(true, false)
	b, gradsB := run(false, true)
	for i := range both {
		if math.Abs(both[i]-a[i]-b[i]) > 1e-12 {
			t.Errorf("dx[%d] = %v, the uses alone give %v and %v", i, both[i], a[i], b[i])
		}
	}
	for i, g := range grads[0].Grad.F64() {
		if want := gradsA[0].Grad.F64()[i] + gradsB[0].Grad.F64()[i]; math.Abs(g-want) > 1e-12 {
			t.Errorf("dgain[%d] = %v, the uses alone give %v", i, g, want)
		}
	}
	if gradsA[2].HasGrad() || gradsB[1].HasGrad() || !gradsA[1].HasGrad() || !gradsB[2].HasGrad() {
		t.Error("a weight whose result leads nowhere has a gradient")
	}
}

// Where few tokens have a target the head gives what it gives with all of them, in several chunks and in one, and says
// so where the logits of all leave too little room.
func TestHeadLossOfTheTokensThatHaveATarget(t *testing.T) {
	for _, x := range []struct{ n, d, v, every int }{{1300, 4, 4096, 3}, {40, 8, 33, 4}, {3000, 2, 4096, 2}} {
		results, temp := [2][][]float64{}, [2]int{}
		targets := make([]int32, x.n)
		var rows, chosen, place []int32
		for i := range targets {
			targets[i] = device.Ignored
			place = append(place, device.Elsewhere)
			if i%x.every == 1 {
				targets[i], place[i] = int32(i*7919%x.v), int32(len(rows))
				rows, chosen = append(rows, int32(i)), append(chosen, targets[i])
			}
		}
		few := Counted{tensor.Of(rows), tensor.Of(chosen), tensor.Of(place)}
		for way := range results {
			r := newRig(t)
			h, head := r.leaf(normals(1, x.n*x.d), x.n, x.d), param(normals(2, x.v*x.d), x.v, x.d)
			losses, logZ := tensor.Of(make([]float64, x.n)), tensor.Of(make([]float64, x.n))
			o := device.LossOptions{Softcap: 3, ZLoss: 0.1, LogZ: logZ}
			if way == 0 {
				r.HeadLoss(h, head, tensor.Of(targets), losses, o)
			} else if !r.HeadLossOf(h, head, few, losses, o) {
				t.Fatalf("%+v: no room", x)
			}
			r.Backward()
			results[way] = [][]float64{losses.F64(), logZ.F64(), h.grad.F64(), head.Grad.F64()}
			temp[way] = r.temp.Peak()
		}
		if temp[0] != temp[1] {
			t.Errorf("%+v: %d bytes of temporary memory, %d for all tokens", x, temp[1], temp[0])
		}
		for i, name := range []string{"loss", "log Z", "dh", "dhead"} {
			newRig(t).equal(name, results[1][i], results[0][i])
		}
	}
	r := newRig(t)
	h, head := r.leaf(normals(1, 64*512), 64, 512), param(normals(2, 9*512), 9, 512)
	few := Counted{tensor.Of([]int32{1, 2}), tensor.Of([]int32{3, 4}), tensor.Of(make([]int32, 64))}
	if r.HeadLossOf(h, head, few, tensor.Of(make([]float64, 64)), device.LossOptions{}) {
		t.Error("576 logits have room for the gradients of two rows of 512")
	}
}

// Three chunks of logits, the last one short, give what the whole [N, V] gives.
func TestHeadLossInChunksEqualsTheWhole(t *testing.T) {
	const n, d, v = 1300, 4, 4096
	if chunk := headChunk(n, v, 8, 0); chunk != 512 {
		t.Fatalf("chunks of %d rows, the test wants 512", chunk)
	}
	r := newRig(t)
	h, head := r.leaf(normals(1, n*d), n, d), param(normals(2, v*d), v, d)
	targets := make([]int32, n)
	for i := range targets {
		targets[i] = int32(i * 7919 % v)
	}
	targets[3], targets[1030] = -100, -100
	losses := tensor.Of(make([]float64, n))
	r.HeadLoss(h, head, tensor.Of(targets), losses, device.LossOptions{})
	r.Backward()

	f64 := device.MatMulOptions{Operand: tensor.F64}
	logits, want := tensor.Of(make([]float64, n*v), n, v), tensor.Of(make([]float64, n))
	dh, dhead := tensor.Of(make([]float64, n*d), n, d), tensor.Of(make([]float64, v*d), v, d)
	r.Device.MatMul(logits, &h.Value, &head.Value, device.NT, f64)
	r.Device.CrossEntropy(want, logits, logits, tensor.Of(targets), device.LossOptions{})
	r.Device.MatMul(dh, logits, &head.Value, device.NN, f64)
	r.Device.MatMul(dhead, logits, &h.Value, device.TN, f64)
	r.equal("loss", losses.F64(), want.F64())
	r.equal("dh", h.grad.F64(), dh.F64())
	r.equal("dhead", head.Grad.F64(), dhead.F64())
}

// Backward computes dropped values again into other memory; they have the bits that forward saw.
func TestTemporariesComeBackBitForBit(t *testing.T) {
	const n, d = 5, 24
	for _, tier := range isa.Tiers() {
		for _, activation := range []tensor.DType{tensor.BF16, tensor.F32} {
			r := newRigOf(t, tier, Types{
				Stream: tensor.F32, Activation: activation, Operand: activation, Stat: tensor.F32,
			})
			narrow := func(data []float64, shape ...int) *Param {
				p := &Param{Value: *tensor.Of(make([]float32, len(data)), shape...)}
				for i, v := range data {
					p.Value.SetFloat64(i, v)
				}
				return p
			}
			gain, up, down := narrow(normals(2, d), d), narrow(normals(3, 2*d*d), 2*d, d), narrow(normals(4, d*d), d, d)
			var temporaries []*Var
			var before [][]byte
			note := func(v *Var) *Var {
				temporaries, before = append(temporaries, v), append(before, bytes.Clone(v.Value.Raw()))
				return v
			}
			r.Block(segment(func(x *Var) *Var {
				h := note(r.RMSNorm(x, gain, 1e-5))
				return r.AddBranch(x, note(r.SwiGLU(r.Linear(h, up))), down, Drop{}, nil)
			}), r.leaf(normals(1, n*d), n, d), nil)
			for i, v := range temporaries {
				if !v.dropped {
					t.Fatalf("temporary %d outlived its block", i)
				}
				r.temp.New(tensor.F32, 7) // another place than in forward
				if got := r.value(v); !bytes.Equal(got.Raw(), before[i]) {
					t.Errorf("%v, %v: temporary %d has other bits when computed again", tier, activation, i)
				}
			}
		}
	}
}

// Few rows of logits at a time make a large head slow; so many, of the largest vocabularies, are a fraction of the
// head.
func TestHeadChunks(t *testing.T) {
	for _, c := range []struct{ rows, vocab, size, room, want int }{
		{4096, 4096, 4, 0, 1024}, {2048, 16384, 4, 0, 512}, {4096, 50257, 4, 0, 512}, {4096, 256000, 4, 0, 512},
		{300, 50257, 4, 0, 300}, {100_000, 256, 4, 0, 16384}, {16384, 50257, 4, 512 << 20, 2624},
		{16384, 256000, 4, 512 << 20, 512}, {2048, 50257, 4, 512 << 20, 2048},
	} {
		if got := headChunk(c.rows, c.vocab, c.size, c.room); got != c.want {
			t.Errorf("%d rows of %d logits in chunks of %d, want %d", c.rows, c.vocab, got, c.want)
		}
	}
}
