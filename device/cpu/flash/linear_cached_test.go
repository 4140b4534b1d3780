package flash

import (
	"bytes"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// A sequence that is processed in pieces, from single tokens to many chunks, has the same bits as in one pass: in
// every storage, on every tier, with and without gates.
func TestLinearStateContinuesBitForBit(t *testing.T) {
	for _, tier := range isa.Tiers() {
		l := newLinear(t, tier, 2)
		rapid.Check(t, func(rt *rapid.T) {
			dt := rapid.SampledFrom([]tensor.DType{tensor.BF16, tensor.F16, tensor.F32, tensor.F64}).Draw(rt, "storage")
			kv := rapid.IntRange(1, 2).Draw(rt, "K")
			heads := device.Heads{
				Q: kv * rapid.IntRange(1, 2).Draw(rt, "H/K"), KV: kv,
				Size: rapid.SampledFrom([]int{1, 8, 17, 32, 33}).Draw(rt, "E"),
			}
			kind := rapid.SampledFrom(linearKinds).Draw(rt, "kind")
			length, gated := rapid.IntRange(1, 300).Draw(rt, "T"), kind.gated
			heads.Rule = kind.rule
			p := newLinearProblem(dt, 1, length, heads, nil, gated, rapid.Uint64().Draw(rt, "seed"))
			l.Forward(p.out, p.norm, p.qkv, p.gates, p.heads, p.mask)

			wide := p.norm.DType()
			c := &device.Cache{
				KV: *zeros(dt, 64, 2*kv*heads.Size), State: *zeros(wide, kv*(heads.Size+1), heads.Size),
				Gates: *zeros(wide, 64, heads.GateCols()),
			}
			switch kind.rule {
			case device.VectorGateRule:
				c.State = *zeros(wide, 4*kv*heads.Size, heads.Size)
			case device.DeltaRule, device.GatedDeltaRule:
				c.KV, c.State = tensor.Tensor{}, *zeros(wide, kv*(heads.Size+128), heads.Size)
			}
			for first := 0; first < length; {
				n := min(rapid.SampledFrom([]int{1, 1, 2, 31, 63, 64, 65, 200}).Draw(rt, "tokens"), length-first)
				part := func(x *tensor.Tensor) *tensor.Tensor {
					size := len(x.Raw()) / length
					v := tensor.View(x.DType(), x.Raw()[first*size:(first+n)*size], n, x.Cols())
					return &v
				}
				out := zeros(dt, n, heads.Q*heads.Size)
				var gates *tensor.Tensor
				if gated {
					gates = part(p.gates)
				}
				l.Cached(out, part(p.qkv), gates, c, first, heads)
				if want := part(p.out); !bytes.Equal(out.Raw(), want.Raw()) {
					rt.Fatalf("%v %v: %d tokens from %d of %d are off by %v",
						tier, dt, n, first, length, farthest(values(out), values(want)))
				}
				first += n
			}
		})
	}
}
