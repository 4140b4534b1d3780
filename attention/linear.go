package attention

import (
	"strings"

	"anneal/device"
)

// Linear replaces the softmax by a feature map, so that all earlier keys and values fit in a state of fixed size
// (Katharopoulos et al. 2020, arXiv 2006.16236):
//
//	φ(x) = elu(x) + 1
//	S_i = g_i·S_{i−1} + φ(k_i) v_iᵀ,  z_i = g_i·z_{i−1} + φ(k_i)
//	o_i = φ(q_i)·S_i / (φ(q_i)·z_i + 10⁻⁶)
//
// Text: linear, with g = 1, or linear:gated, where g = sigmoid(W·h + b) is one number per token and key-value head,
// as in gated linear attention (Yang et al. 2023, arXiv 2312.06635) with a scalar gate. The gate decays S and z
// alike, so an output is always a weighted mean of values. b starts with the decays of retention (Sun et al. 2023,
// arXiv 2307.08621), g = 1 − 2⁻⁵⁻ʰ for head h (h modulo 8): memories of 32 to 4096 tokens.
//
// A query sees every key before it, yet time is linear in the length: T·E·(2E + C) multiplications per head in
// forward, where C = 64 is the chunk size. Memory: outputs, and one denominator per row and head; gates one number.
// In generation a layer keeps the state, K·E·(E+1) numbers, instead of keys and values.
//
// Rotary positions do not apply to such a layer: φ of a rotated vector no longer depends on the distance of two
// tokens. Causality, gates and other layers provide the order; ALiBi needs scores, which do not exist here. Not for
// exact lookup from far away, which a state of E² numbers blurs: mix it with layers of full attention.
//
// The type also serves the variants in delta.go and gla.go, which update the state by other rules.
type Linear struct {
	Gated bool // the state decays
	Rule  device.LinearRule
}

// HasGates reports whether a layer has gates, which control how the state decays or how values are replaced.
func (l Linear) HasGates() bool { return l.Gated || l.Rule.HasGates() }

// OnCards reports whether the device cuda has kernels for l.
func (l Linear) OnCards() bool { return l.Rule == device.AddRule }

func readLinear(text string, options []string) (Pattern, error) {
	gated, err := readGated(text, "linear", options)
	if err != nil {
		return nil, err
	}
	return Linear{Gated: gated}, nil
}

// readGated reads the one option gated.
func readGated(text, name string, options []string) (bool, error) {
	switch {
	case len(options) == 0:
		return false, nil
	case len(options) == 1 && strings.TrimSpace(options[0]) == "gated":
		return true, nil
	}
	return false, &Error{text + ": its one option is gated", name + ", or " + name + ":gated"}
}

// String implements Pattern.
func (l Linear) String() string {
	name := "linear"
	switch l.Rule {
	case device.VectorGateRule:
		return "gla"
	case device.DeltaRule, device.GatedDeltaRule:
		name = "delta"
	}
	if l.Gated {
		name += ":gated"
	}
	return name
}

// Resolve implements Pattern.
func (l Linear) Resolve(int, uint64) Pattern { return l }

// Check implements Pattern.
func (Linear) Check(int, int) error { return nil }

func (Linear) entries(int, int) float64 { return 0 }

// layout returns the layout of full attention, which sees the same keys; the device has separate kernels for linear
// attention.
func (Linear) layout(int, int, int) *device.Layout { return nil }

// cost returns the computed pairs, those within chunks of 64 tokens, relative to full attention.
func (Linear) cost(length int) float64 {
	var own, all int
	for i := 0; i < length; i += tile {
		n := min(tile, length-i)
		own += n * tile
		all += n * (i + tile)
	}
	return float64(own) / float64(all)
}
