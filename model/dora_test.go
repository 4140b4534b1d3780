package model

import (
	"bytes"
	"math"
	"testing"

	"anneal/internal/filetest"
	"anneal/nn"
	"anneal/tensor"
)

// doraModels are those of loraModels with magnitudes.
func doraModels() map[string]Config {
	list := loraModels()
	for name, c := range list {
		c.LoRADora = true
		list[name] = c
	}
	return list
}

// Logits, loss and the gradients of adapters are those of peft on a Llama of transformers, in float64.
func TestAdaptersAreThoseOfPeft(t *testing.T) {
	for file, dora := range map[string]bool{"lora.json": false, "dora.json": true} {
		g := readGolden(t, file)
		c := small
		c.Layers, c.Dim, c.FFN, c.Context, c.Vocab = 4, 12, 20, 10, 13
		c.RopeTheta, c.NormEps, c.TieEmbeddings = 500, 1e-5, true
		c.LoRARank, c.LoRAAlpha, c.LoRADora = 3, 4, dora
		x := g.bench(t, c, c.Context)
		g.fill(t, x)
		for n, p := range x.m.Params() {
			if p.Frozen != (len(g.Grads[n].Grad) == 0) {
				t.Errorf("%s: frozen is %v", p.Name, p.Frozen)
			}
		}
		g.check(t, x)
	}
}

// norms returns the Euclidean norms of the rows of V = W + α/R·B·A.
func norms(w *nn.Param) []float64 {
	a, cols := w.Adapter, w.Shape[1]
	list := make([]float64, w.Shape[0])
	for o := range list {
		sum := 0.0
		for i := range cols {
			v := w.Value.Float64(o*cols + i)
			for r := range a.Down.Value.Dim(0) {
				v += a.Scale * a.Up.Value.Float64(o*a.Down.Value.Dim(0)+r) * a.Down.Value.Float64(r*cols+i)
			}
			sum += v * v
		}
		list[o] = math.Sqrt(sum)
	}
	return list
}

// With its norms held, DoRA is LoRA on W and B whose rows are multiplied by m/‖V‖: the loss and the gradient of A are
// the same, that of B is multiplied, too. The gradient of m is that of finite differences.
func TestGradientsOfMagnitudes(t *testing.T) {
	for name, c := range doraModels() {
		t.Run(name, func(t *testing.T) {
			plain := c
			plain.LoRADora = false
			x, y := adapted(t, c, "fp64"), newBench(t, plain, "fp64", 2, 8)
			of := map[string]*nn.Param{}
			for _, p := range y.m.Params() {
				of[p.Name] = p
			}
			factors := map[string][]float64{} // by the name of a matrix
			for _, p := range x.m.Params() {
				if q := of[p.Name]; q != nil {
					copy(q.Value.F64(), p.Value.F64())
				}
			}
			for _, p := range x.m.Params() {
				if p.Adapter == nil {
					continue
				}
				for r, n := range norms(p) {
					factors[p.Name] = append(factors[p.Name], p.Adapter.Magnitude.Value.Float64(r)/n)
					for _, q := range []*tensor.Tensor{&of[p.Name].Value, &of[p.Name].Adapter.Up.Value} {
						for i := r * q.Dim(1); i < (r+1)*q.Dim(1); i++ {
							q.SetFloat64(i, q.Float64(i)*factors[p.Name][r])
						}
					}
				}
			}
			x.gradients()
			y.gradients()
			near := func(name string, got, want float64) {
				if t.Helper(); math.Abs(got-want) > 1e-10*(1+math.Abs(want)) {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
			near("the loss", x.dev.Sum(&x.b.Losses), y.dev.Sum(&y.b.Losses))
			for _, p := range x.m.Params() {
				if p.Adapter == nil {
					continue
				}
				a, b := p.Adapter, of[p.Name].Adapter
				for i := range a.Down.Grad.Len() {
					near(p.Name+": the gradient of A", a.Down.Grad.Float64(i), b.Down.Grad.Float64(i))
				}
				for i := range a.Up.Grad.Len() {
					near(p.Name+": the gradient of B", a.Up.Grad.Float64(i),
						b.Up.Grad.Float64(i)*factors[p.Name][i/c.LoRARank])
				}
			}
			freeze(x.m.Params(), func(p *nn.Param) bool { _, is := Magnitude(p); return !is })
			checkGradients(t, x)
		})
	}
}

// freeze marks the parameters that a check passes over.
func freeze(list []*nn.Param, over func(p *nn.Param) bool) {
	for _, p := range list {
		p.Frozen = over(p)
	}
}

// Magnitudes begin as no change at all, and a merged model computes what the one with adapters did.
func TestMergedMagnitudesComputeTheSame(t *testing.T) {
	for name, c := range doraModels() {
		plain := c
		plain.LoRARank, plain.LoRAAlpha, plain.LoRATargets, plain.LoRADora = 0, 0, "", false
		fresh, without := newBench(t, c, "fp32", 2, 8), newBench(t, plain, "fp32", 2, 8)
		weights := map[string]*nn.Param{}
		for _, p := range without.m.Params() {
			weights[p.Name] = p
		}
		for _, p := range fresh.m.Params() {
			if of, is := Magnitude(p); is {
				RowNorms(&p.Value, &weights[of].Value)
			} else if !IsAdapter(p) {
				copy(p.Value.Raw(), weights[p.Name].Value.Raw())
			}
		}
		fresh.loss()
		without.loss()
		if !bytes.Equal(fresh.b.Losses.Raw(), without.b.Losses.Raw()) {
			t.Errorf("%s: fresh magnitudes change losses", name)
		}
		x := adapted(t, c, "fp64")
		before := x.loss()
		x.m.Merge(x.dev)
		if after := x.loss(); math.Abs(after-before) > 1e-11*math.Abs(before) || len(x.m.Params()) != len(weights) {
			t.Errorf("%s: the loss is %v with adapters, %v merged, of %d parameters", name, before, after,
				len(x.m.Params()))
		}
		if d := x.m.Config.Differences(plain); d != nil {
			t.Errorf("%s: the merged shape differs by %+v", name, d)
		}
	}
}

// A step takes the memory that was measured; recomputation changes no bit.
func TestMagnitudesTakeWhatWasMeasured(t *testing.T) {
	c := doraModels()["llama"]
	for _, policy := range []string{"fp32", "bf16"} {
		x := adapted(t, c, policy)
		x.gradients()
		if got := x.peaks(); got != x.foot {
			t.Errorf("%s: a step used %+v, measured %+v", policy, got, x.foot)
		}
		if n := filetest.AllocsPerRun(3, x.gradients); n != 0 {
			t.Errorf("%s: %v allocations per forward and backward pass", policy, n)
		}
		again := c
		again.Recompute = Layout{Whole: c.Layers, Segment: 1}
		y := adapted(t, again, policy)
		y.gradients()
		for i, p := range x.m.Params() {
			if !p.Frozen && !bytes.Equal(p.Grad.Raw(), y.m.Params()[i].Grad.Raw()) {
				t.Errorf("%s: recomputation changes the gradient of %s", policy, p.Name)
			}
		}
	}
}

// Every matrix that has an adapter takes the products of one that is trained.
func TestFLOPsOfMagnitudes(t *testing.T) {
	c := doraModels()["llama"]
	x, whole := newBench(t, c, "fp32", 1, 8), newBench(t, small, "fp32", 1, 8)
	adapters := 0.0
	for _, p := range x.m.Params() {
		if IsAdapter(p) && p.Role == nn.Matrix {
			adapters += float64(p.Value.Len())
		}
	}
	want := whole.m.FLOPsPerToken(8) - 2*float64(whole.m.head.Value.Len()) + 6*adapters
	if got := x.m.FLOPsPerToken(8); got != want {
		t.Errorf("%v FLOPs per token, want %v", got, want)
	}
}
