package attention

import (
	"strings"

	"anneal/device"
)

// Linear replaces the softmax by a feature map, so that all earlier keys and values fit in a state of fixed size (Katharopoulos
// et al. 2020, arXiv 2006.16236):
//
//	φ(x) = elu(x) + 1
//	S_i = g_i·S_{i−1} + φ(k_i) v_iᵀ,  z_i = g_i·z_{i−1} + φ(k_i)
//	o_i = φ(q_i)·S_i / (φ(q_i)·z_i + 10⁻⁶)
//
// Text: linear, with g = 1, or linear:gated, where g = sigmoid(W·h + b) is one number per token and key-value head, as in gated
// linear attention (Yang et al. 2023, arXiv 2312.06635) with a scalar gate. It fades S and z alike, so that an output is a
// weighted mean of values whatever the gates do. b starts where retention (Sun et al. 2023, arXiv 2307.08621) has its decays,
// g = 1 − 2⁻⁵⁻ʰ for head h (h modulo 8): memories of 32 to 4096 tokens.
//
// A query sees every key before it, yet time is linear in the length: T·E·(2E + C) multiplications in forward per head, C = 64
// being the tokens that are taken at a time. Memory: outputs and one denominator per row and head; gates one number. In
// generation a layer keeps the state, K·E·(E+1) numbers, instead of keys and values.
//
// Rotary positions do not turn queries and keys of such a layer: φ of a rotated vector no longer goes by the distance of two tokens.
// Order comes from causality, from gates, and from other layers; ALiBi, which lowers scores, has none to lower. Not for what must
// be looked up exactly from far away, which a state of E² numbers blurs: mix it with layers of full attention.
type Linear struct{ Gated bool }

func readLinear(text string, options []string) (Pattern, error) {
	switch {
	case len(options) == 0:
		return Linear{}, nil
	case len(options) == 1 && strings.TrimSpace(options[0]) == "gated":
		return Linear{Gated: true}, nil
	}
	return nil, &Error{text + ": its one option is gated", "linear, or linear:gated"}
}

// String implements Pattern.
func (l Linear) String() string {
	if l.Gated {
		return "linear:gated"
	}
	return "linear"
}

// Resolve implements Pattern.
func (l Linear) Resolve(int, uint64) Pattern { return l }

// Check implements Pattern.
func (Linear) Check(int, int) error { return nil }

func (Linear) entries(int, int) float64 { return 0 }

// layout is that of full attention, which sees the same; the device has kernels of their own for it.
func (Linear) layout(int, int, int) *device.Layout { return nil }

// cost returns the pairs that are computed, those within chunks of 64 tokens, as a part of those of full attention.
func (Linear) cost(length int) float64 {
	var own, all int
	for i := 0; i < length; i += tile {
		n := min(tile, length-i)
		own += n * tile
		all += n * (i + tile)
	}
	return float64(own) / float64(all)
}
