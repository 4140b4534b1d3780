package device

import (
	"math"

	"anneal/tensor"
)

// A Device runs kernels, on tensors in memory of its own making (Memory), in the order of the calls. They are made from one
// goroutine at a time.
//
// In shapes, N is the number of tokens in the batch (B sequences of T, N = B·T), D the width of the residual stream,
// H and K the query and key-value heads, E the size of a head, F the width of the feed-forward layer, V the vocabulary.
//
// Storage follows the precision policy. The residual stream, its gradient, parameters and their gradients, statistics
// and losses are F32. Activations and their gradients are BF16, F16 or F32. In the reference mode everything is F64.
// Whatever the storage, arithmetic is F32 (F64 in the reference mode). Unless said otherwise dst must not overlap a source.
//
// No result depends on the number of threads: every sum has an order fixed by the shapes alone.
type Device interface {
	// Name says what computes, for people: "cpu avx512, 2 threads".
	Name() string
	// Close stops the device's workers and frees its scratch memory.
	Close()

	Memory

	// MatMul writes the product of a and b in the given form to dst, or adds it to dst with Accumulate.
	MatMul(dst, a, b *tensor.Tensor, form Form, opt MatMulOptions)

	// RMSNorm normalises rows: xhat = x / sqrt(mean(x²) + eps), y = xhat · gain (Zhang & Sennrich 2019). x is [N, D] in
	// F32, gain [D]. It stores xhat [N, D] (rounded to its dtype; y is computed from the rounded value) and
	// rstd [N] = 1/sqrt(mean(x²)+eps), which RMSNormGrad needs.
	RMSNorm(y, xhat, rstd, x, gain *tensor.Tensor, eps float64)
	// RMSNormAgain computes y = xhat · gain as RMSNorm did, bit for bit.
	RMSNormAgain(y, xhat, gain *tensor.Tensor)
	// RMSNormGrad adds to dx [N, D] (F32) and dgain [D] (F32) the gradients given dy [N, D]:
	// dx += rstd · (gain·dy − xhat · mean(gain·dy·xhat)); dgain += Σ_rows dy·xhat.
	RMSNormGrad(dx, dgain, dy, xhat, rstd, gain *tensor.Tensor)

	// LayerNorm normalises rows and moves them: xhat = (x − mean(x)) / sqrt(var(x) + eps), y = xhat · gain + bias (Ba et al. 2016,
	// arXiv 1607.06450); var is the mean squared distance from the mean. It stores what RMSNorm does.
	LayerNorm(y, xhat, rstd, x, gain, bias *tensor.Tensor, eps float64)
	// LayerNormAgain computes y = xhat · gain + bias as LayerNorm did, bit for bit.
	LayerNormAgain(y, xhat, gain, bias *tensor.Tensor)
	// LayerNormGrad adds to dx [N, D], dgain [D] and dbias [D] (all F32) the gradients given dy [N, D]:
	// dx += rstd · (g − mean(g) − xhat · mean(g·xhat)), g = gain·dy; dgain += Σ_rows dy·xhat; dbias += Σ_rows dy.
	LayerNormGrad(dx, dgain, dbias, dy, xhat, rstd, gain *tensor.Tensor)

	// QKNorm normalises every query and key head of qkv [N, (H+2K)·E] in place, as RMSNorm with gains gainQ [E] and
	// gainK [E]. It stores the normalised values before the gain in xhat [N, (H+K)·E] and rstd [N, H+K].
	QKNorm(qkv, xhat, rstd, gainQ, gainK *tensor.Tensor, heads Heads, eps float64)
	// QKNormGrad turns dqkv from the gradient of QKNorm's output into that of its input, in place, and adds to the gains' gradients.
	QKNormGrad(dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK *tensor.Tensor, heads Heads)

	// RoPE rotates the query and key heads of qkv [N, (H+2K)·E] in place (Su et al. 2021): element i of a head pairs with
	// i + E/2, or 2i with 2i+1 if heads.Interleaved. cos and sin are [T, E/2] in F32 (F64 in the reference mode); pos [N]
	// (I32) picks their row. With inverse it rotates back, which is the gradient.
	RoPE(qkv, cos, sin, pos *tensor.Tensor, heads Heads, inverse bool)

	// Attention is softmax(heads.Scale·q·kᵀ + mask)·v for every head, from qkv [N, (H+2K)·E] (columns: H query heads, K key
	// heads, K value heads; query head h reads key-value head h·K/H) to out [N, H·E]. It stores one log-sum-exp per row
	// and head in lse [H, N] and never forms [T, T] (FlashAttention, Dao 2022).
	Attention(out, lse, qkv *tensor.Tensor, heads Heads, mask Mask)
	// AttentionGrad writes dqkv [N, (H+2K)·E] from dout [N, H·E] and what Attention read and wrote.
	AttentionGrad(dqkv, dout, out, lse, qkv *tensor.Tensor, heads Heads, mask Mask)
	// AttentionCached is Attention for the n tokens at positions first … of a sequence, qkv [n, (H+2K)·E] and out [n, H·E], given
	// the keys and values of those before them in the cache, to which it adds theirs. The result is that of Attention for the
	// whole sequence, bit for bit. The cache needs CacheRows rows. mask has neither documents nor a length.
	AttentionCached(out, qkv *tensor.Tensor, cache *Cache, first int, heads Heads, mask Mask)

	// LinearAttention is attention by the features φ(x) = elu(x) + 1 in place of the softmax (Katharopoulos et al. 2020, arXiv
	// 2006.16236), in time proportional to the length of a row: out_i = Σ_j w_ij·v_j / n_i with w_ij = φ(q_i)·φ(k_j) and
	// n_i = Σ_j w_ij + 10⁻⁶, over the keys j ≤ i of the document. Columns of qkv and out are those of Attention, but scores have
	// no scale; mask.Start must be that of documents, mask.Layout and mask.Slopes nil. gates [N, K], unless nil, are logits that fade
	// what is past: w_ij gains the factors sigmoid(gates_t) of the tokens j < t ≤ i. It stores the denominators n in norm [H, N],
	// and no state. gates and norm are F32 (F64 in the reference mode).
	LinearAttention(out, norm, qkv, gates *tensor.Tensor, heads Heads, mask Mask)
	// LinearAttentionGrad writes dqkv [N, (H+2K)·E] and, unless gates is nil, dgates [N, K] (F32) from dout [N, H·E] and what
	// LinearAttention read and wrote.
	LinearAttentionGrad(dqkv, dgates, dout, out, norm, qkv, gates *tensor.Tensor, heads Heads, mask Mask)
	// LinearAttentionCached is LinearAttention for the n tokens at positions first … of a sequence without documents, qkv
	// [n, (H+2K)·E], gates [n, K] or nil and out [n, H·E], given the cache of those before them, to which it adds them. The result is
	// that of LinearAttention for the whole sequence, bit for bit. Unless first is 0 the cache must hold position first (Cache.Holds).
	LinearAttentionCached(out, qkv, gates *tensor.Tensor, cache *Cache, first int, heads Heads)

	// SwiGLU writes act [N, F] = silu(gate) · up, where gu [N, 2F] holds gate in its first F columns and up in the rest.
	SwiGLU(act, gu *tensor.Tensor)
	// SwiGLUGrad writes dgu [N, 2F] from dact [N, F] and gu. Unless act is nil it also writes what SwiGLU writes to act [N, F], bit for
	// bit; act is stored as dact is. dgu may be gu, and act may be dact: then nothing is written but what is read.
	SwiGLUGrad(dgu, act, dact, gu *tensor.Tensor)

	// ReLUSquared writes act = max(x, 0)², both [N, F] (So et al. 2021, arXiv 2109.08668).
	ReLUSquared(act, x *tensor.Tensor)
	// ReLUSquaredGrad writes dx = 2·max(x, 0)·dact, all [N, F], and act as SwiGLUGrad does. dx may be x, and act may be dact.
	ReLUSquaredGrad(dx, act, dact, x *tensor.Tensor)

	// MixStreams turns x [N, D] into weights[0]·x + weights[1]·y, in place. kept [N, D], unless it is nil, receives x as it
	// was. x and y are F32, weights [2] too; kept is stored as activations are.
	MixStreams(x, kept, y, weights *tensor.Tensor)
	// MixStreamsGrad turns dx from the gradient of the mix into that of x, in place, and adds to those of y and of the
	// weights: dy += weights[1]·dx, dweights += (Σ dx·kept, Σ dx·y), dx ← weights[0]·dx.
	MixStreamsGrad(dx, dy, dweights, kept, y, weights *tensor.Tensor)

	// AddValues adds weight·table[ids] to the value heads of qkv [N, (H+2K)·E], in place: table [V, K·E], weight [1] (F32),
	// ids [N] (I32, all in [0, V)).
	AddValues(qkv, table, weight, ids *tensor.Tensor, heads Heads)
	// AddValuesGrad adds to the gradients of table and weight: rows dv of the value heads of dqkv give
	// dtable[id] += weight·dv, in token order, and dweight += Σ dv·table[id].
	AddValuesGrad(dtable, dweight, dqkv, table, weight, ids *tensor.Tensor, heads Heads)

	// GELU writes act = ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), elementwise: GPT-2's form of Hendrycks & Gimpel 2016, arXiv
	// 1606.08415.
	GELU(act, x *tensor.Tensor)
	// GELUGrad writes dx from dact and x, and act as SwiGLUGrad does. dx may be x, and act may be dact.
	GELUGrad(dx, act, dact, x *tensor.Tensor)

	// Embedding writes x [N, D] (F32) = table[ids], table [V, D], ids [N] (I32, all in [0, V)).
	Embedding(x, table, ids *tensor.Tensor)
	// EmbeddingGrad adds rows of dx [N, D] to rows ids of dtable [V, D], in token order.
	EmbeddingGrad(dtable, dx, ids *tensor.Tensor)

	// CrossEntropy reads logits [n, V] and targets [n] (I32; −100 is ignored) and writes loss [n] =
	// log Σ exp(logits) − logits[target], 0 where ignored. Unless dlogits is nil it also writes the gradient of the summed loss,
	// softmax(logits) − onehot(target), 0 where ignored, to dlogits [n, V], which may be logits itself.
	CrossEntropy(loss, dlogits, logits, targets *tensor.Tensor, o LossOptions)
	// Softcap bounds x in place: x ← limit·tanh(x/limit) (Gemma 2, arXiv 2408.00118).
	Softcap(x *tensor.Tensor, limit float64)

	// MaxAbs returns the largest magnitude in t: NaN if an element is NaN, 0 if there is none.
	MaxAbs(t *tensor.Tensor) float64
	// Quantize rounds scale·src to the nearest number of an FP8 format (F8E4M3 or F8E5M2), ties to even, and stores it in
	// dst, BF16, which holds each exactly. What lies beyond the largest number becomes that; what is not finite becomes NaN.
	// src is F32, BF16 or F16.
	Quantize(dst, src *tensor.Tensor, format tensor.DType, scale float64)
	// Dropout writes dst [N, D] = mask·src, elementwise, or adds it to dst; mask is o's random factors. dst may be src.
	Dropout(dst, src *tensor.Tensor, o Dropout)

	// RoundStochastic rounds src, F32, to BF16 up or down with the probability of its distance, so that the expectation of
	// dst is src. Numbers that BF16 holds never change. Element 128·g + 32·w + 16·h + l takes 16 bits: half h (0 the lower) of
	// word w of rng.Block(first + 16·g + l); first is a multiple of 2048.
	RoundStochastic(dst, src *tensor.Tensor, rng tensor.RNG, first uint64)

	// SumSquares returns Σ t² over all tensors, accumulated in float64: the sums of each, added in their order. It is not finite if
	// any element is not.
	SumSquares(list ...*tensor.Tensor) float64
	// SumRows adds the sum of the rows of x [N, D], in any storage of activations, to dst [D]: the gradient of a bias.
	SumRows(dst, x *tensor.Tensor)
	// Sum returns Σ t accumulated in float64.
	Sum(t *tensor.Tensor) float64
	// Copy converts src to dst's dtype (round to nearest even).
	Copy(dst, src *tensor.Tensor)
	// Add adds src to dst, elementwise; dtypes may differ.
	Add(dst, src *tensor.Tensor)
	// Scale multiplies t by factor, in place.
	Scale(t *tensor.Tensor, factor float64)
	// Zero clears t.
	Zero(t *tensor.Tensor)
	// Combine writes dst = X·x + Y·y, elementwise, plus Diagonal on the main diagonal of dst [M, N]. All are of one
	// shape and F32, y of any storage; dst may be x or y.
	Combine(dst, x, y *tensor.Tensor, c Combination)

	Optimizers
}

// Combination is the factors of Combine.
type Combination struct{ X, Y, Diagonal float64 }

// Form says which operand of a matrix product is read transposed. Both operands and the result are row-major.
type Form uint8

// The three forms of training. With a weight W [O, I]: forward is NT (y = x·Wᵀ), the input's gradient NN (dx = dy·W),
// the weight's gradient TN (dW = dyᵀ·x).
const (
	NN Form = iota // dst [M, N] = a [M, K] · b [K, N]
	NT             // dst [M, N] = a [M, K] · b [N, K]ᵀ
	TN             // dst [M, N] = a [K, M]ᵀ · b [K, N]
)

// String returns nn, nt or tn.
func (f Form) String() string { return [...]string{"nn", "nt", "tn"}[f] }

// MatMulOptions says how a product is computed and stored.
type MatMulOptions struct {
	// Operand is the precision operands are rounded to before they are multiplied: BF16, F16, TF32 (ties away from zero), F32,
	// or F64 in the reference mode. Operands already stored in BF16 or F16 are read as they are. Products are summed in F32
	// (F64 for F64).
	Operand tensor.DType
	// Scale multiplies the sums before they are stored or added: dst = Scale·(a·b). 0 means 1.
	Scale float64
	// Accumulate adds to dst instead of overwriting it.
	Accumulate bool
	// Bias [N], F32 (F64 for F64), unless it is nil, is added to every row: dst = Scale·(a·b) + Bias. It may be rounded to
	// dst's format first.
	Bias *tensor.Tensor
	// Symmetric promises that the product is a symmetric matrix, such as a·aᵀ or the square of one, and so is what it is added
	// to. The device may compute little more than half of it; the result is the same, bit for bit.
	Symmetric bool
	// FP8 says that all numbers of a, and of b, are ones of an FP8 format (F8E4M3 or F8E5M2), though they are stored in BF16: a device may
	// then multiply them in that. The zero value says nothing.
	FP8 [2]tensor.DType
}

// Heads describes the columns of a fused projection [N, (H+2K)·E].
type Heads struct {
	Q, KV int // number of query heads H and of key-value heads K; K divides H
	Size  int // elements per head E
	// Scale multiplies attention's scores; 0 is the usual 1/√E.
	Scale float64
	// Interleaved says which elements RoPE pairs. Both layouts are the same model with the rows of the query and key weights
	// permuted within a head.
	Interleaved bool
}

// ScoreScale returns what attention multiplies scores by.
func (h Heads) ScoreScale() float64 {
	if h.Scale == 0 {
		return 1 / math.Sqrt(float64(h.Size))
	}
	return h.Scale
}

// Cols returns (H+2K)·E.
func (h Heads) Cols() int { return (h.Q + 2*h.KV) * h.Size }

// Mask says which keys a query sees. Token i of a row sees key j of the same row if Start[i] <= j <= i.
type Mask struct {
	Len int // T, tokens per row; the batch has N/T rows
	// Start [N] (I32) is the position within its row at which the token's document begins. Nil means 0: plain causal attention.
	Start *tensor.Tensor
	// Layout restricts the keys further, by head; nil does not.
	Layout *Layout
	// Slopes [H], unless nil, are those of ALiBi (Press et al. 2022, arXiv 2108.12409): query i gives key j the score less
	// Slopes[h]·(i−j).
	Slopes []float64
}

// LossOptions says what CrossEntropy computes beside the cross-entropy. The zero value asks for nothing.
type LossOptions struct {
	// Softcap above 0 says that Softcap with this limit made the logits z of others: the gradient is of those, that is,
	// times 1 − (z/Softcap)².
	Softcap float64
	// ZLoss is the coefficient of log²Z, Z = Σ exp(logits), in what is differentiated (Chowdhery et al. 2022, arXiv
	// 2204.02311): the gradient gains 2·ZLoss·log Z·softmax(logits). loss stays the cross-entropy.
	ZLoss float64
	// Scale multiplies the gradient before it is rounded to what dlogits is stored in; 0 means 1.
	Scale float64
	// LogZ [n], unless it is nil, receives log Z of each row, 0 where ignored.
	LogZ *tensor.Tensor
	// Labels, unless it is the zero RNG, replaces targets that are not ignored by labels drawn from softmax(logits): row r
	// takes the first label whose cumulative probability exceeds number FirstLabel + r of the stream.
	Labels     tensor.RNG
	FirstLabel uint64
}

// Dropout holds random factors (Srivastava et al. 2014), Scale or 0, for rows of D elements: a pure function of the place, so that
// they are made again where they are needed and never stored. Element j of row r, counted from Row, survives if its 16-bit
// number is below Keep. The number is half h (0 the lower) of word w of RNG.Block((Row+r)·2³² + Site·2¹⁶ + 16·g + l), where
// j = 128·g + 32·w + 16·h + l. If Keep is 65536 there are no random numbers and every factor is Scale.
type Dropout struct {
	RNG   tensor.RNG
	Site  int // number of the place in the model, below 2¹⁶
	Row   int // number of the tensor's first row among the rows of the step, below 2³²
	Keep  int // of 65536 elements, how many survive on average
	Scale float64
	Add   bool // to dst instead of overwriting it
}
