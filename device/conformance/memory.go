package conformance

import (
	"bytes"
	"testing"

	"anneal/tensor"
)

// memoryHolds checks that the device's own memory begins as zeros, and that Read returns the results of Write and
// kernels in the order of the calls. The caller may change the source of Write as soon as it returns.
func memoryHolds(t *testing.T, d bench, act, _ tensor.DType) {
	const n = 5 * 331
	own, err := d.NewArena("memory", 2*n*act.Size()+2*tensor.Align)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	x, y := own.New(act, 5, 331), own.New(act, 5, 331)
	got := make([]byte, x.Bytes())
	for i := range got {
		got[i] = 0xff
	}
	d.Read(got, &x)
	if !bytes.Equal(got, make([]byte, len(got))) {
		t.Errorf("%v: fresh memory is not zero", act)
	}
	want, src := of(act, normal(n, 21), 5, 331), of(act, normal(n, 21), 5, 331)
	d.Write(&x, src.Raw())
	clear(src.Raw())
	d.Copy(&y, &x)
	d.Scale(&x, 2)
	row := x.Slice(1, 2)
	d.Zero(&row)
	shared := d.of(act, make([]float64, n), 5, 331)
	d.Copy(shared, &x)
	d.Read(got, &y)
	if !bytes.Equal(got, want.Raw()) {
		t.Errorf("%v: a copy of what was written is something else", act)
	}
	for i := range n {
		want.SetFloat64(i, 2*want.Float64(i))
		if i/331 == 1 {
			want.SetFloat64(i, 0)
		}
	}
	d.Read(got, &x)
	if !bytes.Equal(got, want.Raw()) || !bytes.Equal(shared.Raw(), want.Raw()) {
		t.Errorf("%v: what was written, doubled but for a row of zeros, is something else", act)
	}
	if d.Read(got[:331*act.Size()], &row); !bytes.Equal(got[:331*act.Size()], make([]byte, 331*act.Size())) {
		t.Errorf("%v: the row of zeros is not", act)
	}
	d.wait(t)
}
