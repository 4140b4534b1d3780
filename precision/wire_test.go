package precision

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/tensor"
)

// A gradient that is encoded in pieces, cut at stretches, decodes to the bits of one that is rounded as a whole, in
// every format; what is not finite stays so.
func TestPiecesTravelLikeTheWhole(t *testing.T) {
	dev, err := cpu.New(2)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const n = rounderRun + 3*device.Stretch + 77
	rng := tensor.NewRNG(1, tensor.PurposeData, 0)
	g := make([]float32, n)
	for i := range g {
		g[i] = float32(rng.Normals(uint64(i))[0])
	}
	g[n-5] = float32(math.NaN())
	for _, wire := range []Wire{WireF32, WireBF16, WireInt8} {
		a, err := tensor.NewArena("wire", 32<<20)
		if err != nil {
			t.Fatal(err)
		}
		key := WireKey{Seed: 2, Step: 3, Param: 4, Block: 5}
		whole, pieces := a.New(tensor.F32, n), a.New(tensor.F32, n)
		copy(whole.F32(), g)
		copy(pieces.F32(), g)
		wire.NewRounder(a, n, tensor.F32).Round(dev, &whole, key)
		for from := 0; from < n; from += 2 * device.Stretch {
			piece := pieces.Slice(from, min(from+2*device.Stretch, n))
			coded := wire.Layout(a, piece.Len(), tensor.F32)
			coded.Encode(dev, &piece, key, from)
			coded.Decode(dev, &piece)
		}
		changed := 0
		for i, v := range whole.F32() {
			if math.Float32bits(v) != math.Float32bits(pieces.F32()[i]) {
				t.Fatalf("%s: element %d is %v in the whole, %v in a piece", wire, i, v, pieces.F32()[i])
			}
			if v != g[i] {
				changed++
			}
		}
		if v := whole.F32()[n-5]; v == v {
			t.Errorf("%s: NaN becomes %v", wire, v)
		}
		if (changed > n/2) != (wire != WireF32) {
			t.Errorf("%s: %d of %d elements are rounded", wire, changed, n)
		}
		a.Close()
	}
}
