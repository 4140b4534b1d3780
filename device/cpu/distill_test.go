package cpu

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// A teacher's probabilities, the divergence from them and the gradient of the whole loss equal torch's, on every tier
// in F32 and in F64, in place and out of place.
func TestDistillationIsThatOfTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/distill.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Rows, Cols, K                       int
		Temperature, Weight, Softcap, ZLoss float64
		Teacher, Logits, P, Rest, Loss      []float64
		KL, Grad                            []float64
		Targets, IDs                        []int32
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for n, c := range cases {
		for _, tier := range isa.Tiers() {
			for _, wide := range []tensor.DType{tensor.F32, tensor.F64} {
				near := map[tensor.DType]float64{tensor.F32: 2e-5, tensor.F64: 1e-12}[wide]
				dev := NewTier(tier, 2)
				of := func(x []float64, shape ...int) *tensor.Tensor {
					y := tensor.View(wide, make([]byte, len(x)*wide.Size()), shape...)
					for i, v := range x {
						y.SetFloat64(i, v)
					}
					return &y
				}
				empty := func(shape ...int) *tensor.Tensor {
					x := make([]float64, shape[0]*append(shape, 1)[1])
					return of(x, shape...)
				}
				same := func(what string, got *tensor.Tensor, want []float64) {
					for i, w := range want {
						if g := got.Float64(i); !(math.Abs(g-w) <= near*(1+math.Abs(w))) {
							t.Fatalf("case %d, %v, %v: %s %d is %v, torch has %v", n, tier, wide, what, i, g, w)
						}
					}
				}
				l := device.Teacher{
					IDs: tensor.Of(make([]int32, c.Rows*c.K), c.Rows, c.K), P: empty(c.Rows, c.K), Rest: empty(c.Rows),
					KL: empty(c.Rows), Temperature: c.Temperature, Weight: c.Weight,
				}
				teacher := of(c.Teacher, c.Rows, c.Cols)
				dev.Likeliest(l.IDs, l.P, l.Rest, teacher, c.Temperature)
				same("logit of the teacher", teacher, c.Teacher)
				if !slices.Equal(l.IDs.I32(), c.IDs) {
					t.Fatalf("case %d, %v: columns %v, torch has %v", n, tier, l.IDs.I32(), c.IDs)
				}
				same("probability", l.P, c.P)
				same("rest", l.Rest, c.Rest)
				logits, loss := of(c.Logits, c.Rows, c.Cols), empty(c.Rows)
				apart := empty(c.Rows, c.Cols)
				o := device.LossOptions{Softcap: c.Softcap, ZLoss: c.ZLoss, Teacher: &l}
				for _, grad := range []*tensor.Tensor{apart, logits} {
					for i := range c.Rows {
						l.KL.SetFloat64(i, math.NaN())
					}
					dev.CrossEntropy(loss, grad, logits, tensor.Of(slices.Clone(c.Targets)), o)
					same("loss", loss, c.Loss)
					same("divergence", l.KL, c.KL)
					same("gradient", grad, c.Grad)
				}
				dev.Close()
			}
		}
	}
}

// Threads change no bit, equal logits are ranked in their order, and the only column of a row has probability 1.
func TestLikeliestColumnsAreTakenInOrder(t *testing.T) {
	x := make([]float32, 300*50)
	for i := range x {
		x[i] = float32(i * 7919 % 13)
	}
	var before []byte
	for _, threads := range []int{1, 2} {
		dev := NewTier(isa.Generic, threads)
		ids, p := tensor.Of(make([]int32, 300*9), 300, 9), tensor.Of(make([]float32, 300*9), 300, 9)
		rest := tensor.Of(make([]float32, 300))
		dev.Likeliest(ids, p, rest, tensor.Of(x, 300, 50), 1)
		dev.Close()
		if all := slices.Concat(ids.Raw(), p.Raw(), rest.Raw()); before == nil {
			before = all
		} else if !slices.Equal(before, all) {
			t.Error("threads change bits")
		}
		for r := range 300 {
			row, got := x[r*50:(r+1)*50], ids.I32()[r*9:(r+1)*9]
			want := make([]int32, 50)
			for i := range want {
				want[i] = int32(i)
			}
			slices.SortStableFunc(want, func(a, b int32) int { return int(row[b] - row[a]) })
			if !slices.Equal(got, want[:9]) {
				t.Fatalf("row %d: columns %v, want %v", r, got, want[:9])
			}
		}
	}
	dev := NewTier(isa.Generic, 1)
	defer dev.Close()
	id, p, rest := tensor.Of([]int32{5}, 1, 1), tensor.Of([]float32{5}, 1, 1), tensor.Of([]float32{5})
	dev.Likeliest(id, p, rest, tensor.Of([]float32{-3}, 1, 1), 1)
	if id.I32()[0] != 0 || p.F32()[0] != 1 || rest.F32()[0] != 0 {
		t.Errorf("one column: %v with %v, rest %v", id.I32(), p.F32(), rest.F32())
	}
}

// Tokens to which the student gives almost no probability neither vanish from the divergence nor overflow its
// gradient.
func TestDistillationOfExtremeLogits(t *testing.T) {
	for _, tier := range isa.Tiers() {
		dev := NewTier(tier, 1)
		l := device.Teacher{
			IDs: tensor.Of([]int32{0}, 1, 1), P: tensor.Of([]float32{0.25}, 1, 1), Rest: tensor.Of([]float32{0.75}),
			KL: tensor.Of([]float32{0}), Temperature: 1, Weight: 1,
		}
		logits := tensor.Of([]float32{300, 0, 0, -200}, 1, 4)
		loss := tensor.Of([]float32{0})
		dev.CrossEntropy(loss, logits, logits, tensor.Of([]int32{0}), device.LossOptions{Teacher: &l})
		dev.Close()
		want := 0.25*math.Log(0.25) + 0.75*(math.Log(0.75)+300-math.Log(2))
		if got := l.KL.Float64(0); !(math.Abs(got-want) <= 1e-4*want) {
			t.Errorf("%v: the divergence is %v, want %v", tier, got, want)
		}
		for i, want := range []float64{0.75, -0.375, -0.375, 0} {
			if got := logits.Float64(i); !(math.Abs(got-want) <= 1e-6) {
				t.Errorf("%v: the gradient of logit %d is %v, want %v", tier, i, got, want)
			}
		}
	}
}
