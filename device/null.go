package device

import "anneal/tensor"

// Null is a device that does not compute or access memory. Running a model on it with measuring arenas gives the
// memory of a real run, from the same code.
type Null struct{ Unknown }

var _ Device = Null{}

// Name returns "null".
func (Null) Name() string { return "null" }

// Close does nothing.
func (Null) Close() {}

// The kernels do nothing.
func (Null) MatMul(_, _, _ *tensor.Tensor, _ Form, _ MatMulOptions)      {}
func (Null) RMSNorm(_, _, _, _, _ *tensor.Tensor, _ float64)             {}
func (Null) RMSNormAgain(_, _, _ *tensor.Tensor)                         {}
func (Null) RMSNormGrad(_, _, _, _, _, _ *tensor.Tensor)                 {}
func (Null) LayerNorm(_, _, _, _, _, _ *tensor.Tensor, _ float64)        {}
func (Null) LayerNormAgain(_, _, _, _ *tensor.Tensor)                    {}
func (Null) LayerNormGrad(_, _, _, _, _, _, _ *tensor.Tensor)            {}
func (Null) QKNorm(_, _, _, _, _ *tensor.Tensor, _ Heads, _ float64)     {}
func (Null) QKNormGrad(_, _, _, _, _, _, _ *tensor.Tensor, _ Heads)      {}
func (Null) RoPE(_, _, _, _ *tensor.Tensor, _ Heads, _ bool)             {}
func (Null) Attention(_, _, _ *tensor.Tensor, _ Heads, _ Mask)           {}
func (Null) AttentionGrad(_, _, _, _, _ *tensor.Tensor, _ Heads, _ Mask) {}

func (Null) LinearAttention(_, _, _, _ *tensor.Tensor, _ Heads, _ Mask)              {}
func (Null) LinearAttentionGrad(_, _, _, _, _, _, _ *tensor.Tensor, _ Heads, _ Mask) {}
func (Null) LinearAttentionCached(_, _, _ *tensor.Tensor, _ *Cache, _ int, _ Heads)  {}

func (Null) SwiGLU(_, _ *tensor.Tensor)                                  {}
func (Null) SwiGLUGrad(_, _, _, _ *tensor.Tensor)                        {}
func (Null) GeGLU(_, _ *tensor.Tensor)                                   {}
func (Null) GeGLUGrad(_, _, _, _ *tensor.Tensor)                         {}
func (Null) ReLUSquared(_, _ *tensor.Tensor)                             {}
func (Null) ReLUSquaredGrad(_, _, _, _ *tensor.Tensor)                   {}
func (Null) MixStreams(_, _, _, _ *tensor.Tensor)                        {}
func (Null) MixStreamsGrad(_, _, _, _, _, _ *tensor.Tensor)              {}
func (Null) AddValues(_, _, _, _ *tensor.Tensor, _ Heads)                {}
func (Null) AddValuesGrad(_, _, _, _, _, _ *tensor.Tensor, _ Heads)      {}
func (Null) GELU(_, _ *tensor.Tensor)                                    {}
func (Null) GELUGrad(_, _, _, _ *tensor.Tensor)                          {}
func (Null) Embedding(_, _, _ *tensor.Tensor)                            {}
func (Null) EmbeddingGrad(_, _, _ *tensor.Tensor)                        {}
func (Null) CrossEntropy(_, _, _, _ *tensor.Tensor, _ LossOptions)       {}
func (Null) Softcap(_ *tensor.Tensor, _ float64)                         {}
func (Null) AdamW(_, _, _, _ *tensor.Tensor, _ AdamW)                    {}
func (Null) AdamW8(_, _, _, _, _, _ *tensor.Tensor, _ AdamW)             {}
func (Null) Momentum(_, _, _ *tensor.Tensor, _ Momentum)                 {}
func (Null) Lion(_, _, _ *tensor.Tensor, _ Lion)                         {}
func (Null) AdEMAMix(_, _, _, _, _ *tensor.Tensor, _ AdEMAMix)           {}
func (Null) Adafactor(_, _, _, _, _ *tensor.Tensor, _ Adafactor)         {}
func (Null) Descend(_, _ *tensor.Tensor, _ Descend)                      {}
func (Null) MaxAbs(*tensor.Tensor) float64                               { return 0 }
func (Null) Quantize(_, _ *tensor.Tensor, _ tensor.DType, _ float64)     {}
func (Null) Dropout(_, _ *tensor.Tensor, _ Dropout)                      {}
func (Null) RoundStochastic(_, _ *tensor.Tensor, _ tensor.RNG, _ uint64) {}
func (Null) SquareSums([]float64, ...*tensor.Tensor)                     {}
func (Null) Sum(*tensor.Tensor) float64                                  { return 0 }
func (Null) SumRows(_, _ *tensor.Tensor)                                 {}
func (Null) Copy(_, _ *tensor.Tensor)                                    {}
func (Null) Add(_, _ *tensor.Tensor)                                     {}
func (Null) Scale(*tensor.Tensor, float64)                               {}
func (Null) Zero(*tensor.Tensor)                                         {}
func (Null) Combine(_, _, _ *tensor.Tensor, _ Combination)               {}
func (Null) EqualiseRows(_, _ *tensor.Tensor, _ float64)                 {}
func (Null) Sophia(_, _, _, _ *tensor.Tensor, _ Sophia) int              { return 0 }
func (Null) MeanSquare(_, _ *tensor.Tensor, _, _ float64)                {}

func (Null) Route(_, _, _, _, _ *tensor.Tensor, _ bool)                   {}
func (Null) RouteGrad(_, _, _, _, _, _, _ *tensor.Tensor, _ RouteOptions) {}
func (Null) Dispatch(_, _, _, _ *tensor.Tensor)                           {}
func (Null) TakeRows(_, _, _ *tensor.Tensor)                              {}
func (Null) MixRows(_, _, _, _ *tensor.Tensor, _ bool)                    {}
func (Null) WeighRows(_, _, _, _, _ *tensor.Tensor)                       {}
func (Null) GateRows(_, _, _ *tensor.Tensor)                              {}
func (Null) GateRowsGrad(_, _, _, _, _ *tensor.Tensor)                    {}
