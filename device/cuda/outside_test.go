//go:build cuda && linux

package cuda

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// Only the card reads ids, positions and targets. A value outside its table makes the results of its token NaN and
// changes nothing else.
func TestNumbersOutsideTheirTableGiveNaN(t *testing.T) {
	d := newEmulated(t)
	memory, err := d.NewShared("test", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	const n, cols, bad = 4, 10, 2
	floats := func(rows, cols int) *tensor.Tensor {
		x := memory.New(tensor.F32, rows, cols)
		for i := range x.Len() {
			x.F32()[i] = float32(i%7) + 1
		}
		return &x
	}
	numbers := func(wrong int32) *tensor.Tensor {
		x := memory.New(tensor.I32, n)
		copy(x.I32(), []int32{1, 0, wrong, 2})
		return &x
	}
	onlyBad := func(name string, wrong int32, x *tensor.Tensor, per int) {
		t.Helper()
		for i, v := range x.F32() {
			if nan := math.IsNaN(float64(v)); nan != (i/per == bad) {
				t.Errorf("%s with %d: element %d is %v", name, wrong, i, v)
			}
		}
	}
	for _, wrong := range []int32{-1, 3, math.MaxInt32, math.MinInt32} {
		x, table := floats(n, cols), floats(3, cols)
		d.Embedding(x, table, numbers(wrong))
		qkv := floats(n, 2*cols)
		heads := device.Heads{Q: 1, KV: 0, Size: 2 * cols}
		d.RoPE(qkv, floats(3, cols), floats(3, cols), numbers(wrong), heads, false)
		loss := floats(1, n)
		d.CrossEntropy(loss, nil, floats(n, 3), numbers(wrong), device.LossOptions{})
		dtable, dx := floats(3, cols), floats(n, cols)
		clear(dtable.F32())
		d.EmbeddingGrad(dtable, dx, numbers(wrong))
		if err := d.Wait(); err != nil {
			t.Fatal(err)
		}
		onlyBad("Embedding", wrong, x, cols)
		onlyBad("RoPE", wrong, qkv, 2*cols)
		onlyBad("CrossEntropy", wrong, loss, 1)
		for i, v := range dtable.F32() {
			if token := [3]int{1, 0, 3}[i/cols]; v != dx.F32()[token*cols+i%cols] {
				t.Errorf("EmbeddingGrad with %d: element %d is %v, want that of token %d", wrong, i, v, token)
			}
		}
	}
}
