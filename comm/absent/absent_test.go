package absent_test

import (
	"testing"

	"anneal/comm/absent"
	_ "anneal/internal/torture"
	"anneal/tensor"
)

func TestARankIsAlone(t *testing.T) {
	list := func(n int) [][]tensor.Tensor {
		all := make([][]tensor.Tensor, 3)
		for r := range all {
			all[r] = []tensor.Tensor{*tensor.Of(make([]float32, n+r))}
		}
		return all
	}
	out, room := list(1), list(10)
	for _, inPlace := range []bool{false, true} {
		c := absent.New(1, 3, inPlace)
		if c.Rank() != 1 || c.Size() != 3 || c.InPlace() != inPlace {
			t.Errorf("rank %d of %d, in place: %v", c.Rank(), c.Size(), c.InPlace())
		}
		all, err := c.Share([]byte("alone"))
		if err != nil || len(all) != 3 || string(all[0]) != "alone" || string(all[2]) != "alone" {
			t.Errorf("Share gives %q, %v", all, err)
		}
		given := room
		if inPlace {
			given = nil
		}
		x := c.NewExchange("the gradients", out, given)
		x.Start(3)
		if x.Wait() != nil || x.Sent() != nil {
			t.Error("a transfer with nobody fails")
		}
		for r := range 3 {
			want := &room[r][0]
			if inPlace || r == 1 {
				want = &out[1][0]
			}
			if got := x.From(r)[0]; got.Pointer() != want.Pointer() {
				t.Errorf("in place %v: From(%d) has %d elements, want %d", inPlace, r, got.Len(), want.Len())
			}
		}
		x.Release()
	}
	if a := absent.As(absent.New(2, 5, true)); a.Rank() != 2 || a.Size() != 5 || !a.InPlace() {
		t.Error("As does not give the group that it is given")
	}
}
