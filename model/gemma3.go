package model

// newGemma3Block declares a layer of Gemma 3 (Gemma Team 2025, arXiv 2503.19786). It is that of Gemma 2 with these
// parts, each with its own key:
//
//	RMSNorm on queries and keys     model.qk_norm, instead of a soft-cap of the scores
//	five windows, one full layer    model.attention
//	two bases of rotary positions   model.rope_theta_local for layers with windows, model.rope_theta for the others
func newGemma3Block(b *builder) *block { return newGemma2Block(b) }
