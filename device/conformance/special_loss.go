package conformance

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// extremeLogits checks that exponentials neither overflow nor lose a loss, and that −Inf has a probability of 0.
func extremeLogits(t *testing.T, d bench, act, wide tensor.DType) {
	logits := d.of(act, []float64{
		1e4, -1e4, 0, 0,
		-1e4, -1e4, -1e4, -1e4,
		3e38, 0, -3e38, 0,
		2, -inf, 2, -inf,
	}, 4, 4)
	// whose largest numbers are not 3e38
	if large, ok := map[tensor.DType]float64{tensor.BF16: 1e38, tensor.F16: 6e4}[act]; ok {
		for _, i := range []int{8, 10} {
			logits.SetFloat64(i, math.Copysign(large, logits.Float64(i)))
		}
	}
	top, low := logits.Float64(0), logits.Float64(1)
	loss, dlogits := d.of(wide, make([]float64, 4)), d.of(wide, make([]float64, 16), 4, 4)
	behind := d.of(wide, []float64{nan, nan, nan, nan})
	d.CrossEntropy(loss, dlogits, logits, d.place(tensor.Of([]int32{1, 2, 0, 2})),
		device.LossOptions{Behind: behind})
	d.wait(t)
	for i, want := range []float64{top - low, 0, 0, 0} {
		if got := behind.Float64(i); got != want {
			t.Errorf("%v: target %d is %v behind the highest logit, want %v", act, i, got, want)
		}
	}
	for i, want := range []float64{top - low, math.Log(4), 0, math.Log(2)} {
		if got := loss.Float64(i); !(math.Abs(got-want) <= 1e-6*want) {
			t.Errorf("%v: loss %d is %v, want %v", act, i, got, want)
		}
	}
	for i, want := range []float64{1, -1, 0, 0, .25, .25, -.75, .25, 0, 0, 0, 0, .5, 0, -.5, 0} {
		if got := dlogits.Float64(i); !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("%v: dlogits %d is %v, want %v", act, i, got, want)
		}
	}
}

// softcapExtremes checks that capped values never exceed the limit, NaN stays, and a saturated logit has no gradient.
func softcapExtremes(t *testing.T, d bench, act, wide tensor.DType) {
	const limit = 16 // which BF16 holds
	x := d.of(act, []float64{inf, -inf, 1e30, -1e30, 0, nan, 3.5 * limit, 1e-30}, 2, 4)
	d.Softcap(x, limit)
	d.wait(t)
	for i, want := range []float64{limit, -limit, limit, -limit, 0, nan, limit, 1e-30} {
		tolerance := map[bool]float64{true: 1e-2, false: 0}[i == 6] * limit
		if i == 7 {
			tolerance = want/128 + map[tensor.DType]float64{tensor.F16: 0x1p-25}[act]
		}
		if got := x.Float64(i); !(math.Abs(got) <= limit && math.Abs(got-want) <= tolerance) &&
			!(math.IsNaN(want) && math.IsNaN(got)) {
			t.Errorf("%v: element %d is %v, want %v", act, i, got, want)
		}
	}
	logits, loss := d.of(act, []float64{limit, -limit, 0, 0}, 1, 4), d.of(wide, []float64{nan})
	d.CrossEntropy(loss, logits, logits, d.place(tensor.Of([]int32{1})),
		device.LossOptions{Softcap: limit, ZLoss: 1e-4})
	d.wait(t)
	for i, saturated := range []bool{true, true, false, false} {
		if got := logits.Float64(i); math.IsNaN(got) || (math.Abs(got) <= 1e-6) != saturated && i < 2 {
			t.Errorf("%v: the gradient of logit %d is %v", act, i, got)
		}
	}
	if got := loss.Float64(0); !(math.Abs(got-2*limit) <= 1e-3) {
		t.Errorf("%v: the loss is %v, want %v", act, got, 2*limit)
	}
}

// drawnLabels checks that a label is where the cumulative distribution passes the row's random number, and that loss
// and gradient are those of that label, bit for bit.
func drawnLabels(t *testing.T, d bench, act, wide tensor.DType) {
	drawLabels(t, d, act, wide, 300, 131)
	drawLabels(t, d, act, wide, 9, 20011)
}

func drawLabels(t *testing.T, d bench, act, wide tensor.DType, n, v int) {
	const first = 77
	x := normal(n*v, 7)
	targets := make([]int32, n)
	targets[5] = device.Ignored
	rng := tensor.NewRNG(3, tensor.PurposeLabel, 4)
	logits, labels := d.of(act, x, n, v), d.place(tensor.Of(slices.Clone(targets)))
	loss, dlogits := d.of(wide, make([]float64, n)), d.of(wide, make([]float64, n*v), n, v)
	d.CrossEntropy(loss, dlogits, logits, labels, device.LossOptions{Labels: rng, FirstLabel: first})
	d.wait(t)
	for r, label := range labels.I32() {
		if targets[r] == device.Ignored {
			if label != device.Ignored {
				t.Errorf("%v: an ignored token got label %d", act, label)
			}
			continue
		}
		var below, sum float64
		for c := range v {
			p := math.Exp(logits.Float64(r*v + c))
			if sum += p; c < int(label) {
				below += p
			}
		}
		at, own := rng.Float64(first+uint64(r))*sum, math.Exp(logits.Float64(r*v+int(label)))
		if at < below-1e-5*sum || at > below+own+1e-5*sum {
			t.Errorf("%v: row %d drew label %d, which has [%v, %v] of %v, for %v",
				act, r, label, below, below+own, sum, at)
		}
	}
	again, same := d.of(wide, make([]float64, n)), d.of(wide, make([]float64, n*v), n, v)
	d.CrossEntropy(again, same, logits, labels, device.LossOptions{})
	d.wait(t)
	if !bytes.Equal(again.Raw(), loss.Raw()) || !bytes.Equal(same.Raw(), dlogits.Raw()) {
		t.Errorf("%v: loss and gradient of drawn labels are not those of the same labels given", act)
	}
	d.CrossEntropy(loss, logits, logits, d.place(tensor.Of(slices.Clone(targets))),
		device.LossOptions{Labels: rng, FirstLabel: first})
	d.wait(t)
	if !bytes.Equal(again.Raw(), loss.Raw()) {
		t.Errorf("%v: with the gradient in place, other labels are drawn", act)
	}
}

func ignoredRows(t *testing.T, d bench, act, wide tensor.DType) {
	const n, v = 3, 21
	x := normal(n*v, 6)
	for i := range v {
		x[v+i] = nan
	}
	loss, logits := d.of(wide, []float64{nan, nan, nan}), d.of(act, x, n, v)
	d.CrossEntropy(loss, logits, logits, d.place(tensor.Of([]int32{0, device.Ignored, 20})), device.LossOptions{})
	d.wait(t)
	for i := range n * v {
		if got := logits.Float64(i); math.IsNaN(got) || i/v == 1 && got != 0 {
			t.Fatalf("%v: dlogits[%d, %d] is %v", act, i/v, i%v, got)
		}
	}
	if got := loss.Float64(1); got != 0 {
		t.Errorf("%v: the loss of an ignored token is %v", act, got)
	}
}
