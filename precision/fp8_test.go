package precision

import (
	"math"
	"testing"

	"anneal/autograd"
	"anneal/device"
	"anneal/tensor"
)

// amax is a device on which every tensor has the same largest magnitude.
type amax struct {
	device.Null
	value float64
}

func (d amax) MaxAbs(*tensor.Tensor) float64 { return d.value }

func newScales(t *testing.T, r FP8) *autograd.FP8 {
	t.Helper()
	a, err := tensor.NewArena("test", 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return r.New(a)
}

// NUM-10: the scale after each step of a script, for a history of three steps and a margin of one power of two. A step
// may see several tensors; what is evaluated counts for nothing.
func TestDelayedScaleFollowsItsScript(t *testing.T) {
	s := newScales(t, FP8{Delayed: true, History: 3, Margin: 1})
	x := s.X.(*Delayed)
	if first := x.Scale(amax{value: 9}, nil, false); first != 1 {
		t.Fatalf("the first scale is %v, want 1", first)
	}
	for i, step := range []struct {
		seen []float64 // by the micro-batches of the step
		want float64   // 448 / largest of the last three / 2
	}{
		{[]float64{1, 2}, 112},
		{[]float64{4, 3}, 56},
		{[]float64{0}, 56},
		{[]float64{math.Inf(1), 5}, 56}, // not finite: as it was, and forgotten
		{[]float64{1}, 224},
		{[]float64{math.NaN(), 1e9}, 224},
		{[]float64{0}, 224},
		{[]float64{0}, 224}, // nothing but zeros: as it was
		{[]float64{0.5}, 448},
		{[]float64{1e-40}, 448},
		{[]float64{0}, 448},
		{[]float64{0}, math.MaxFloat32}, // 448/1e-40/2 is infinite in float32
	} {
		before := x.Scale(amax{value: 1e30}, nil, false)
		for _, v := range step.seen {
			if got := x.Scale(amax{value: v}, nil, true); got != before {
				t.Fatalf("step %d: the scale changes within the step from %v to %v", i, before, got)
			}
		}
		x.EndStep()
		if got := float64(x.State.F32()[0]); got != step.want {
			t.Fatalf("step %d, after %v: scale %v, want %v", i, step.seen, got, step.want)
		}
	}
	if dy := s.DY.(*Delayed); dy.max != 57344 {
		t.Errorf("gradients are scaled to %v, want 57344", dy.max)
	}
}

func TestCurrentScaleIsThatOfTheTensor(t *testing.T) {
	s := newScales(t, FP8{})
	for _, c := range []struct{ amax, x, dy float64 }{
		{448, 1, 128},
		{3.5, 128, 16384},
		{0, 448e12, 57344e12},
		{math.NaN(), 1, 1},
		{math.Inf(1), 1, 1},
	} {
		d := amax{value: c.amax}
		if x, w, dy := s.X.Scale(d, nil, true), s.W.Scale(d, nil, true),
			s.DY.Scale(d, nil, true); x != float64(float32(c.x)) || w != x || dy != float64(float32(c.dy)) {
			t.Errorf("amax %v: scales %v, %v and %v, want %v and %v", c.amax, x, w, dy, c.x, c.dy)
		}
	}
}
