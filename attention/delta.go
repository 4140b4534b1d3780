package attention

import "anneal/device"

// The delta rule (DeltaNet; Schlag et al. 2021, arXiv 2102.11174; in chunks Yang et al. 2024, arXiv 2406.06484) is
// linear attention that replaces values instead of adding them: it first removes from the state what the state holds
// for the key.
//
//	S_i = α_i·S_{i−1} + β_i·(v_i − α_i·S_{i−1}·k̂_i)·k̂_iᵀ
//	o_i = norm(S_i·q̂_i)
//
// q̂ and k̂ are divided by their lengths, β = sigmoid(W·h) is one number per token and key-value head, and norm
// divides a head by its root mean square. It has no gain, because the weights that follow can take its place.
//
// Text: delta, with α = 1, or delta:gated, the gated delta rule (Yang et al. 2024, arXiv 2412.06464), whose state also
// decays. α = sigmoid(a) with a = W·h + b is e^(−A·softplus(−a)) of that paper with A = 1; b starts with the decays of
// linear:gated. That paper's output gate is not part of the pattern; its short convolutions
// are model.short_conv.
//
// Time is linear in the length, 1.7 times that of linear:gated. Memory: as linear, with one or two gates, and
// during the backward pass of a layer a state of E² numbers per 64 tokens of one row for each worker. In generation a
// layer keeps K·E·(E + 128) numbers.
//
// Use it instead of linear where tokens have to be looked up: a new value does not blur old ones. It runs on the CPU.

func readDelta(text string, options []string) (Pattern, error) {
	gated, err := readGated(text, "delta", options)
	if err != nil {
		return nil, err
	}
	if gated {
		return Linear{Gated: true, Rule: device.GatedDeltaRule}, nil
	}
	return Linear{Rule: device.DeltaRule}, nil
}
