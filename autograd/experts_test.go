package autograd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/filetest"
	"anneal/internal/isa"
	"anneal/tensor"
)

// expertsCase is a mixture of experts that transformers computed in float64 (testdata/make_experts.py).
type expertsCase struct {
	Name      string
	K         int
	Normalise bool
	Tensors   map[string]struct {
		Shape []int
		Data  []float64
	}
}

func TestExpertsMatchTransformers(t *testing.T) {
	data, err := os.ReadFile("testdata/experts.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []expertsCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			r := newRig(t)
			params := map[string]*Param{}
			for _, name := range []string{"router", "gate_up", "down", "shared_gate_up", "shared_down", "shared_gate"} {
				if w, ok := c.Tensors[name]; ok {
					params[name] = param(w.Data, w.Shape...)
				}
			}
			x := c.Tensors["x"]
			in := r.leaf(x.Data, x.Shape...)
			m := mixture{params["router"], params["gate_up"], params["down"], params["shared_gate_up"],
				params["shared_down"],
				params["shared_gate"], Router{K: c.K, Normalise: c.Normalise, Balance: 0.3, ZLoss: 0.2}}
			y := m.run(r.Tape, in)
			r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
			n := float64(x.Shape[0])
			r.equal("balance", []float64{r.Routing.Balance / n}, c.Tensors["balance"].Data)
			r.equal("z", []float64{r.Routing.ZLoss / n}, c.Tensors["z"].Data)
			r.backward(y, c.Tensors["dy"].Data)
			r.equal("dx", in.grad.F64(), c.Tensors["dx"].Data)
			for name, p := range params {
				r.equal("d"+name, p.Grad.F64(), c.Tensors["d"+name].Data)
			}
		})
	}
}

// mixture is a feed-forward layer of experts; the shared one may be nil, and its gate.
type mixture struct {
	router, gateUp, down                 *Param
	sharedGateUp, sharedDown, sharedGate *Param
	o                                    Router
}

func (m *mixture) run(t *Tape, h *Var) *Var {
	y := t.Experts(h, t.Gates(h, m.router), m.gateUp, m.down, m.o)
	if m.sharedDown == nil {
		return y
	}
	var gate *Var
	if m.sharedGate != nil {
		gate = t.Gates(h, m.sharedGate)
	}
	return t.AddShared(y, t.Linear(t.SwiGLU(t.Linear(h, m.sharedGateUp)), m.sharedDown), gate)
}

func (m *mixture) params() []*Param {
	return []*Param{m.router, m.gateUp, m.down, m.sharedGateUp, m.sharedDown, m.sharedGate}
}

// newMixture returns a mixture of e experts with a shared one of the same size.
func newMixture(dtype tensor.DType, d, f, e int, o Router) *mixture {
	weights := func(seed uint32, rows, cols int) *Param {
		p := &Param{Value: hostTensor(dtype, rows, cols), Grad: hostTensor(dtype, rows, cols)}
		for i, x := range normals(seed, rows*cols) {
			p.Value.SetFloat64(i, x/math.Sqrt(float64(cols)))
		}
		return p
	}
	return &mixture{
		weights(1, e, d), weights(2, e*2*f, d), weights(3, e*d, f), weights(4, 2*f, d), weights(5, d, f),
		weights(6, 1, d), o,
	}
}

func hostTensor(dtype tensor.DType, shape ...int) tensor.Tensor {
	n := dtype.Size()
	for _, d := range shape {
		n *= d
	}
	return tensor.View(dtype, make([]byte, n), shape...)
}

// The gradients are the slopes of Σ y·dy and of the losses that the tape reports, while no token changes its experts.
func TestExpertsGradMatchesFiniteDifferences(t *testing.T) {
	const n, d, f, e, step = 6, 4, 3, 5, 1e-5
	for _, o := range []Router{
		{K: 2, Normalise: true, Balance: 0.3, ZLoss: 0.1}, {K: 3, Balance: 0.1}, {K: 1, ZLoss: 0.2},
	} {
		m, dy, data := newMixture(tensor.F64, d, f, e, o), normals(9, n*d), normals(8, n*d)
		r := newRig(t)
		run := func() (*Var, *Var, float64) {
			r.Reset(true)
			x := r.leaf(data, n, d)
			y := m.run(r.Tape, x)
			loss := o.Balance*r.Routing.Balance + o.ZLoss*r.Routing.ZLoss
			for i, v := range y.Value.F64() {
				loss += v * dy[i]
			}
			return x, y, loss
		}
		x, y, _ := run()
		r.backward(y, dy)
		check := func(what string, values, grad []float64) {
			t.Helper()
			grad = append([]float64(nil), grad...)
			for i, v := range values {
				values[i] = v + step
				_, _, up := run()
				values[i] = v - step
				_, _, down := run()
				values[i] = v
				if slope := (up - down) / (2 * step); math.Abs(slope-grad[i]) > 1e-7*(1+math.Abs(slope)) {
					t.Errorf("%+v: %s[%d] = %v, finite differences give %v", o, what, i, grad[i], slope)
				}
			}
		}
		check("dx", data, x.grad.F64())
		for i, p := range m.params() {
			check(fmt.Sprintf("gradient of parameter %d", i), p.Value.F64(), p.Grad.F64())
		}
	}
}

// mixtureBlock is a branch of a decoder with a mixture of experts.
type mixtureBlock struct {
	*mixture
	gain *Param
}

func (m *mixtureBlock) Forward(t *Tape, x *Var, seq *Sequence) *Var {
	return t.AddStream(x, m.run(t, t.RMSNorm(x, m.gain, 1e-5)), Drop{}, seq)
}

// Results have the same bits for any number of threads, on every tier, and if backward runs the block again.
func TestExpertsHaveTheSameBitsAlways(t *testing.T) {
	const n, d, f, e = 150, 24, 20, 6
	for _, tier := range isa.Tiers() {
		for _, activation := range []tensor.DType{tensor.F32, tensor.BF16} {
			types := Types{Stream: tensor.F32, Activation: activation, Operand: activation, Stat: tensor.F32}
			run := func(threads int, again bool) (bits []byte) {
				r := newRigOf(t, tier, types)
				dev := cpu.NewTier(tier, threads)
				defer dev.Close()
				r.Device = dev
				m := newMixture(tensor.F32, d, f, e, Router{K: 2, Normalise: true, Balance: 0.01, ZLoss: 0.001})
				gain := &Param{Value: hostTensor(tensor.F32, d), Grad: hostTensor(tensor.F32, d)}
				for i, v := range normals(7, d) {
					gain.Value.SetFloat64(i, v)
				}
				for range 2 { // the second gradient is added to the first
					r.Reset(true)
					x := r.leaf(normals(8, n*d), n, d)
					var y *Var
					if again {
						y = r.Recompute(&mixtureBlock{m, gain}, x, nil, x.Value.DType())
					} else {
						y = r.Block(&mixtureBlock{m, gain}, x, nil)
					}
					bits = append(bits, y.Value.Raw()...)
					bits = fmt.Append(bits, r.Routing)
					dy := r.streamGrad(y)
					for i, v := range normals(9, n*d) {
						dy.SetFloat64(i, v)
					}
					r.Backward()
					bits = append(bits, x.grad.Raw()...)
				}
				for _, p := range append(m.params(), gain) {
					bits = append(bits, p.Grad.Raw()...)
				}
				return bits
			}
			want := run(1, false)
			if !bytes.Equal(run(3, false), want) {
				t.Errorf("%v, %v: three threads give other bits than one", tier, activation)
			}
			if !bytes.Equal(run(2, true), want) {
				t.Errorf("%v, %v: recomputation gives other bits", tier, activation)
			}
		}
	}
}

// A device that does not compute needs the memory of a real run, also of one whose tokens all choose one expert, and a
// step allocates nothing after the first.
func TestExpertsNeedTheMemoryThatIsMeasured(t *testing.T) {
	const n, d, f, e = 40, 16, 12, 4
	types := Types{Stream: tensor.F32, Activation: tensor.F32, Operand: tensor.F32, Stat: tensor.F32}
	gain := &Param{Value: hostTensor(tensor.F32, d), Grad: hostTensor(tensor.F32, d)}
	for i := range d {
		gain.Value.F32()[i] = 1
	}
	step := func(tape *Tape, m *mixtureBlock, data []float64) {
		tape.Reset(true)
		x := tape.wrap(tape.keep.New(tensor.F32, n, d))
		for i, v := range data {
			x.Value.SetFloat64(i, v)
		}
		y := tape.Block(m, x, nil)
		tape.Device.Zero(tape.streamGrad(y))
		tape.Backward()
	}
	m := &mixtureBlock{newMixture(tensor.F32, d, f, e, Router{K: 2, Normalise: true, Balance: 0.01}), gain}
	keep, temp := tensor.NewMeasure("keep"), tensor.NewMeasure("temp")
	step(NewTape(device.Null{}, types, keep, temp), m, nil)
	one := &mixtureBlock{newMixture(tensor.F32, d, f, e, Router{K: 1}), gain}
	clear(one.router.Value.Raw())
	keep1, temp1 := tensor.NewMeasure("keep"), tensor.NewMeasure("temp")
	step(NewTape(device.Null{}, types, keep1, temp1), one, nil)
	for _, c := range []struct {
		m          *mixtureBlock
		keep, temp int
	}{{m, keep.Peak(), temp.Peak()}, {one, keep1.Peak(), temp1.Peak()}} {
		r := newRigOf(t, isa.Generic, types)
		data := normals(3, n*d)
		step(r.Tape, c.m, data)
		if r.keep.Peak() != c.keep || r.temp.Peak() != c.temp {
			t.Errorf("a step takes %d + %d bytes, measured %d + %d", r.keep.Peak(), r.temp.Peak(), c.keep, c.temp)
		}
		if allocations := filetest.AllocsPerRun(3, func() { step(r.Tape, c.m, data) }); allocations != 0 {
			t.Errorf("a step allocates %v times", allocations)
		}
	}
}
