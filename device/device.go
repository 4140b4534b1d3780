package device

import (
	"math"

	"anneal/tensor"
)

// A Device runs kernels in the order of the calls, on tensors in memory that it allocated (Memory). Calls must come
// from one goroutine at a time.
//
// In shapes, N is the number of tokens in the batch (B sequences of T, N = B·T), D the width of the residual stream,
// H and K the query and key-value heads, E the size of a head, F the width of the feed-forward layer, V the
// vocabulary.
//
// Storage follows the precision policy. The residual stream, its gradient, parameters and their gradients, statistics
// and losses are F32. Activations and their gradients are BF16, F16 or F32. In the reference mode everything is F64.
// Arithmetic is always F32 (F64 in the reference mode). Unless documented otherwise, dst must not overlap a source.
//
// Results do not depend on the number of threads: the shapes alone determine the order of every sum.
type Device interface {
	Properties

	// Close stops the device's workers and frees its scratch memory.
	Close()

	Memory

	// MatMul writes the product of a and b in the given form to dst, or adds it to dst with Accumulate. On the CPU, b
	// may be weights in a blocked format (tensor.Q8 and others) if form is NT; they are never rounded to opt.Operand.
	MatMul(dst, a, b *tensor.Tensor, form Form, opt MatMulOptions)

	// RMSNorm normalises rows: xhat = x / sqrt(mean(x²) + eps), y = xhat · gain (Zhang & Sennrich 2019). x is [N, D]
	// in F32, gain [D]. It stores xhat [N, D] (rounded to its dtype; y is computed from the rounded value) and rstd
	// [N] = 1/sqrt(mean(x²)+eps), which RMSNormGrad needs.
	RMSNorm(y, xhat, rstd, x, gain *tensor.Tensor, eps float64)
	// RMSNormAgain recomputes y = xhat · gain of RMSNorm, bit for bit.
	RMSNormAgain(y, xhat, gain *tensor.Tensor)
	// RMSNormGrad adds to dx [N, D] (F32) and dgain [D] (F32) the gradients given dy [N, D]:
	// dx += rstd · (gain·dy − xhat · mean(gain·dy·xhat)); dgain += Σ_rows dy·xhat.
	RMSNormGrad(dx, dgain, dy, xhat, rstd, gain *tensor.Tensor)

	// LayerNorm normalises, scales and shifts rows: xhat = (x − mean(x)) / sqrt(var(x) + eps), y = xhat · gain + bias
	// (Ba et al. 2016, arXiv 1607.06450); var is the mean squared distance from the mean. It stores xhat and rstd
	// like RMSNorm.
	LayerNorm(y, xhat, rstd, x, gain, bias *tensor.Tensor, eps float64)
	// LayerNormAgain recomputes y = xhat · gain + bias of LayerNorm, bit for bit.
	LayerNormAgain(y, xhat, gain, bias *tensor.Tensor)
	// LayerNormGrad adds to dx [N, D], dgain [D] and dbias [D] (all F32) the gradients given dy [N, D]:
	// dx += rstd · (g − mean(g) − xhat · mean(g·xhat)), g = gain·dy; dgain += Σ_rows dy·xhat; dbias += Σ_rows dy.
	LayerNormGrad(dx, dgain, dbias, dy, xhat, rstd, gain *tensor.Tensor)

	// WeightNorm gives the rows of v [O, I] the norms gain [O], in place (Salimans & Kingma 2016, arXiv 1602.07868):
	// v ← gain · v / ‖v‖, row by row. Rows of zeros stay. v has the storage of weights or activations, gain is F32 (F64
	// in the reference mode).
	WeightNorm(v, gain *tensor.Tensor)
	// WeightNormGrad turns dv [O, I], in place, from the gradient of the result of WeightNorm into that of v, with ‖v‖
	// taken as a constant, and adds to that of gain: dgain += Σ dv·v / ‖v‖, dv ← dv · gain / ‖v‖. v are the rows
	// before WeightNorm. For rows of zeros, dv does not change and nothing is added to dgain.
	WeightNormGrad(dv, dgain, v, gain *tensor.Tensor)

	// QKNorm normalises every query and key head of qkv [N, (H+2K)·E] in place, like RMSNorm with gains gainQ [E] and
	// gainK [E]. It stores the normalised values before the gain in xhat [N, (H+K)·E] and rstd [N, H+K].
	QKNorm(qkv, xhat, rstd, gainQ, gainK *tensor.Tensor, heads Heads, eps float64)
	// QKNormGrad turns dqkv, in place, from the gradient of QKNorm's output into that of its input, and adds to the
	// gains' gradients.
	QKNormGrad(dqkv, dgainQ, dgainK, xhat, rstd, gainQ, gainK *tensor.Tensor, heads Heads)

	// RoPE rotates the query and key heads of qkv [N, (H+2K)·E] in place (Su et al. 2021): element i of a head pairs
	// with i + E/2, or 2i with 2i+1 if heads.Interleaved. cos and sin are [T, E/2] in F32 (F64 in the reference
	// mode); pos [N] (I32) selects their row. With inverse it rotates back, which computes the gradient.
	RoPE(qkv, cos, sin, pos *tensor.Tensor, heads Heads, inverse bool)

	// Attention computes softmax(heads.Scale·q·kᵀ + mask)·v for every head, from qkv [N, (H+2K)·E] (columns: H query
	// heads, K key heads, K value heads; query head h reads key-value head h·K/H) to out [N, H·E]. It stores one
	// log-sum-exp per row and head in lse [H, N] and never forms [T, T] (FlashAttention, Dao 2022).
	Attention(out, lse, qkv *tensor.Tensor, heads Heads, mask Mask)
	// AttentionGrad writes dqkv [N, (H+2K)·E] from dout [N, H·E] and the arguments of Attention.
	AttentionGrad(dqkv, dout, out, lse, qkv *tensor.Tensor, heads Heads, mask Mask)
	// AttentionSinksGrad adds to dsinks [H] the gradient of mask.Sinks, given dout [N, H·E] and the arguments and
	// results of Attention: dsinks[h] −= Σ exp(sinks[h] − lse)·(dout·out).
	AttentionSinksGrad(dsinks, dout, out, lse, sinks *tensor.Tensor, heads Heads)
	// MergeAttention combines the results of Attention for two disjoint sets of keys: out and lse become those for
	// both sets. m maps rows of part [M, H·E] and partLSE [H, M] to rows of out [N, H·E] and lse [H, N]. With l =
	// log(e^lse + e^partLSE), out = e^(lse−l)·out + e^(partLSE−l)·part and lse = l. A log-sum-exp of −Inf means no
	// keys. lse and partLSE are F32 (F64 in the reference mode); out may be F32 where part is narrower.
	MergeAttention(out, lse, part, partLSE *tensor.Tensor, heads Heads, m Merge)
	// AttentionCached is Attention for the n tokens at positions first … of a sequence, qkv [n, (H+2K)·E] and out [n,
	// H·E]. The cache has the keys and values of the tokens before these; AttentionCached adds those of the n tokens.
	// The result equals that of Attention for the whole sequence, bit for bit. The cache needs CacheRows rows. mask
	// must have neither documents nor a length.
	AttentionCached(out, qkv *tensor.Tensor, cache *Cache, first int, heads Heads, mask Mask)

	// LinearAttention is attention with the features φ(x) = elu(x) + 1 instead of the softmax (Katharopoulos et al.
	// 2020, arXiv 2006.16236), in time linear in the length of a row: out_i = Σ_j w_ij·v_j / n_i with w_ij =
	// φ(q_i)·φ(k_j) and n_i = Σ_j w_ij + 10⁻⁶, over the keys j ≤ i of the document. Columns of qkv and out are those
	// of Attention, but scores have no scale. mask.Start must be that of documents; mask.Layout and mask.Slopes must
	// be nil. gates [N, K], unless nil, are logits that decay the past: w_ij is multiplied by the factors
	// sigmoid(gates_t) of the tokens j < t ≤ i. It stores the denominators n in norm [H, N], and no state. gates and
	// norm are F32 (F64 in the reference mode).
	//
	// The delta rules (heads.Rule) replace values instead of adding them: with q̂ and k̂ of length 1 (10⁻⁶ added to
	// the square), S_i = α_i·S_{i−1} + β_i·(v_i − α_i·S_{i−1}·k̂_i)·k̂_iᵀ and o_i = S_i·q̂_i. o is divided by the root
	// of mean(o²) + 10⁻⁶, which norm receives. For each key-value head, gates holds the logit of β and, unless α is 1,
	// the logit of α: [N, K] or [N, 2K].
	//
	// VectorGateRule has S_i = S_{i−1}·diag(α_i) + v_i·k_iᵀ and o_i = S_i·q_i/√E, divided in the same way, with
	// α = sigmoid(max(a, −64))^(1/16) for logits a, gates [N, K·E].
	LinearAttention(out, norm, qkv, gates *tensor.Tensor, heads Heads, mask Mask)
	// LinearAttentionGrad writes dqkv [N, (H+2K)·E] and, unless gates is nil, dgates as gates (F32) from dout [N, H·E]
	// and the arguments of LinearAttention.
	LinearAttentionGrad(dqkv, dgates, dout, out, norm, qkv, gates *tensor.Tensor, heads Heads, mask Mask)
	// LinearAttentionCached is LinearAttention for the n tokens at positions first … of a sequence without documents,
	// qkv [n, (H+2K)·E], gates with n rows, out [n, H·E]. The cache has the tokens before these; LinearAttentionCached
	// adds the n tokens. The result equals that of LinearAttention for the whole sequence, bit for bit. Unless first
	// is 0 the cache must hold position first (Cache.Holds).
	LinearAttentionCached(out, qkv, gates *tensor.Tensor, cache *Cache, first int, heads Heads)

	// ShortConv writes out = silu(z), where every column of x [N, C] is filtered by its own k taps [C, k] (F32; F64 in
	// the reference mode), a causal depthwise convolution: z_i = Σ_d taps[k−1−d]·x_(i−d), where d runs over those of
	// the last k tokens, up to i, that are in i's document. mask has the length of rows and the documents; k is at
	// most 16, and out has the dtype of x.
	ShortConv(out, x, taps *tensor.Tensor, mask Mask)
	// ShortConvGrad writes dx and adds to dtaps, from dout [N, C] and the arguments of ShortConv.
	ShortConvGrad(dx, dtaps, dout, x, taps *tensor.Tensor, mask Mask)

	// SwiGLU writes act [N, F] = silu(gate) · up, where gu [N, 2F] holds gate in its first F columns and up in the
	// rest.
	SwiGLU(act, gu *tensor.Tensor)
	// SwiGLUGrad writes dgu [N, 2F] from dact [N, F] and gu. Unless act is nil it also writes the result of SwiGLU to
	// act [N, F], bit for bit; act has the dtype of dact. dgu may be gu, and act may be dact, which saves memory
	// traffic.
	SwiGLUGrad(dgu, act, dact, gu *tensor.Tensor)

	// GeGLU writes act [N, F] = gelu(gate) · up (Shazeer 2020, arXiv 2002.05202) with the gelu of GELU: gu [N, 2F] like
	// SwiGLU's.
	GeGLU(act, gu *tensor.Tensor)
	// GeGLUGrad is SwiGLUGrad for GeGLU.
	GeGLUGrad(dgu, act, dact, gu *tensor.Tensor)

	// ReLUSquared writes act = max(x, 0)², both [N, F] (So et al. 2021, arXiv 2109.08668).
	ReLUSquared(act, x *tensor.Tensor)
	// ReLUSquaredGrad writes dx = 2·max(x, 0)·dact, all [N, F], and act like SwiGLUGrad. dx may be x, and act may be
	// dact.
	ReLUSquaredGrad(dx, act, dact, x *tensor.Tensor)

	// MixStreams replaces x [N, D] by weights[0]·x + weights[1]·y, in place. kept [N, D], unless nil, receives the
	// old x. x, y and weights [2] are F32; kept has the storage of activations.
	MixStreams(x, kept, y, weights *tensor.Tensor)
	// MixStreamsGrad turns dx, in place, from the gradient of the mix into that of x, and adds to the gradients of y
	// and of the weights: dy += weights[1]·dx, dweights += (Σ dx·kept, Σ dx·y), dx ← weights[0]·dx.
	MixStreamsGrad(dx, dy, dweights, kept, y, weights *tensor.Tensor)

	// AddValues adds weight·table[ids] to the value heads of qkv [N, (H+2K)·E], in place: table [V, K·E], weight [1]
	// (F32), ids [N] (I32, all in [0, V)).
	AddValues(qkv, table, weight, ids *tensor.Tensor, heads Heads)
	// AddValuesGrad adds to the gradients of table and weight. For the rows dv of the value heads of dqkv: dtable[id]
	// += weight·dv, in token order, and dweight += Σ dv·table[id].
	AddValuesGrad(dtable, dweight, dqkv, table, weight, ids *tensor.Tensor, heads Heads)

	// GELU writes act = ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))), elementwise: GPT-2's form of Hendrycks & Gimpel
	// 2016, arXiv 1606.08415.
	GELU(act, x *tensor.Tensor)
	// GELUGrad writes dx from dact and x, and act like SwiGLUGrad. dx may be x, and act may be dact.
	GELUGrad(dx, act, dact, x *tensor.Tensor)

	// Route chooses K of E experts for every token by the logits [N, E] of a router (Shazeer et al. 2017, arXiv
	// 1701.06538). With p = softmax(logits), experts [N, K] (I32) are those with the largest logits, the largest first,
	// and among equals the lower number first; weights [N, K] are their p, divided by their sum if normalise. It stores
	// logZ [N] = log Σ exp(logits) and adds Σ_n p to sums [E]. All but experts are F32 (F64 in the reference mode).
	Route(weights, experts, logZ, sums, logits *tensor.Tensor, normalise bool)
	// RouteGrad writes dlogits [N, E] from dweights [N, K] and the arguments and results of Route. It adds the
	// gradients of o's losses; counts [E] (I32) are those of Dispatch.
	RouteGrad(dlogits, dweights, weights, experts, logZ, counts, logits *tensor.Tensor, o RouteOptions)
	// Dispatch sorts the choices n·K+j of experts [N, K] by expert, and the choices of an expert by number. order
	// [N·K] receives the sorted choices, place [N·K] the place of each choice in order, and counts [E] the number of
	// choices per expert. All are I32.
	Dispatch(order, place, counts, experts *tensor.Tensor)
	// TakeRows writes dst [M, D], row i = row order[i]/k of src [N, D], or zeros where order[i] is Elsewhere: the rows
	// of tokens in the order of Dispatch (k = K), or any rows (k = 1). order is [M] (I32).
	TakeRows(dst, src, order *tensor.Tensor, k int)
	// MixRows writes dst [N, D], row n = Σ_j weights[n, j]·row place[n·K+j] of src [N·K, D], added in the order of j,
	// or adds the sum to dst. Nil weights are 1.
	MixRows(dst, src, weights, place *tensor.Tensor, add bool)
	// WeighRows computes gradients of MixRows' weights. For every row i of dx and x [N·K, F], with the choice c =
	// order[i], it writes dweights[c] = Σ dx·x, and then multiplies both rows by weights[c]. weights and dweights are
	// [N, K].
	WeighRows(dweights, dx, x, weights, order *tensor.Tensor)
	// GateRows adds sigmoid(gates[n])·src to dst, both [N, D], row by row; gates is [N] in F32 (F64 in the reference
	// mode).
	GateRows(dst, src, gates *tensor.Tensor)
	// GateRowsGrad writes dsrc [N, D] and dgates [N] from dy [N, D] and the arguments of GateRows: dsrc = s·dy and
	// dgates = s·(1−s)·Σ dy·src with s = sigmoid(gates). dsrc may be src.
	GateRowsGrad(dsrc, dgates, dy, src, gates *tensor.Tensor)

	// Embedding writes x [N, D] (F32) = table[ids], table [V, D], ids [N] (I32, all in [0, V), or Elsewhere for a row
	// of zeros).
	Embedding(x, table, ids *tensor.Tensor)
	// EmbeddingGrad adds the rows of dx [N, D] to the rows ids of dtable [V, D], in token order. Rows with the id
	// Elsewhere are skipped.
	EmbeddingGrad(dtable, dx, ids *tensor.Tensor)

	// CrossEntropy reads logits [n, V] and targets [n] (I32: columns, Ignored or Elsewhere) and writes loss [n] = log
	// Σ exp(logits) − logits[target]. The loss is 0 where the target is Ignored, and lacks the second term where it is
	// Elsewhere. Unless dlogits is nil it also writes the gradient of the summed loss, softmax(logits) −
	// onehot(target), 0 where ignored, to dlogits [n, V]. dlogits may be logits itself.
	CrossEntropy(loss, dlogits, logits, targets *tensor.Tensor, o LossOptions)
	// Likeliest writes the predictions of logits [n, V] for a Teacher: the k columns with the largest logits to ids
	// [n, k] (I32), in descending order, the first of equal ones; their probabilities to p [n, k]; and the probability
	// of all others to rest [n]. Probabilities are those of softmax(logits/temperature).
	Likeliest(ids, p, rest, logits *tensor.Tensor, temperature float64)
	// Softcap bounds x in place: x ← limit·tanh(x/limit) (Gemma 2, arXiv 2408.00118).
	Softcap(x *tensor.Tensor, limit float64)

	// MaxAbs returns the largest magnitude in t: NaN if an element is NaN, 0 if t is empty.
	MaxAbs(t *tensor.Tensor) float64
	// Quantize rounds scale·src to the nearest number of an FP8 format (F8E4M3 or F8E5M2), ties to even, and stores
	// it in dst as BF16, which represents all of them exactly. Larger values saturate at the largest number;
	// non-finite values become NaN. src is F32, BF16 or F16.
	Quantize(dst, src *tensor.Tensor, format tensor.DType, scale float64)
	// QuantizeBlocks rounds every block of rows × cols numbers of src, a matrix [R, C], to E4M3 times a power of two
	// of the block, and stores the result in dst as BF16. The power is the smallest, but at least 2⁻¹²⁶, for which the
	// largest magnitude of the block is at most 448 times the power. Blocks at the right and lower edges are smaller.
	// A block with a non-finite number becomes NaN. src is F32, BF16 or F16; dst may be src.
	QuantizeBlocks(dst, src *tensor.Tensor, rows, cols int)
	// Dropout writes dst [N, D] = mask·src, elementwise, or adds it to dst; mask holds the random factors of o. dst
	// may be src.
	Dropout(dst, src *tensor.Tensor, o Dropout)

	// RoundStochastic rounds src, F32, up or down to BF16 at random, so that the expectation of dst is src. Numbers
	// that BF16 represents exactly never change. Element 128·g + 32·w + 16·h + l uses 16 bits: half h (0 the lower)
	// of word w of rng.Block(first + 16·g + l); first is a multiple of 2048.
	RoundStochastic(dst, src *tensor.Tensor, rng tensor.RNG, first uint64)

	// EncodeInt8 rounds src, F32 (F64 in the reference mode), to int8 up or down at random, in blocks of Block
	// elements: scales [blocks] become max|src|/127 of each block, codes (U8, two's complement) about src/scale, so
	// that the expectation of codes·scale is src to 2⁻¹⁷ of a scale. Elements take random numbers as in
	// RoundStochastic. The scale is −0 if all numbers of a block are below 2⁻¹⁰³, NaN if one is not finite; the codes
	// are then 0.
	EncodeInt8(codes, scales, src *tensor.Tensor, rng tensor.RNG, first uint64)
	// DecodeInt8 writes dst = codes·scale: −0 in a block whose scale is −0, NaN where it is NaN.
	DecodeInt8(dst, codes, scales *tensor.Tensor)

	// SquareSums writes the sum of the squares of each stretch of the tensors (Stretch elements, the last of a tensor
	// fewer), in order, accumulated in float64. A sum is not finite if one of its elements is not. See Squares.
	SquareSums(sums []float64, list ...*tensor.Tensor)
	// SumRows adds the sum of the rows of x [N, D], in any activation storage, to dst [D]: the gradient of a bias.
	SumRows(dst, x *tensor.Tensor)
	// Sum returns Σ t accumulated in float64.
	Sum(t *tensor.Tensor) float64
	// Copy converts src to dst's dtype, rounding to nearest even.
	Copy(dst, src *tensor.Tensor)
	// CopyRuns copies part of src [M, D'] to part of dst [N, D], or adds it. dtypes may differ, as in Copy and Add.
	CopyRuns(dst, src *tensor.Tensor, r Runs)
	// Add adds src to dst, elementwise; dtypes may differ.
	Add(dst, src *tensor.Tensor)
	// Fold writes the sum of the terms to dst, or adds them to it: dst = [dst +] terms[0] + terms[1] + …, from left to
	// right, each addition rounded once to the dtype of dst, F32 or F64. There is at least one term. All have one
	// dtype, that of dst or BF16. dst may be one of the terms.
	Fold(dst *tensor.Tensor, terms []*tensor.Tensor, add bool)
	// Scale multiplies t by factor, in place.
	Scale(t *tensor.Tensor, factor float64)
	// Zero sets t to zero.
	Zero(t *tensor.Tensor)
	// Combine writes dst = X·x + Y·y, elementwise, plus Diagonal on the main diagonal of dst [M, N]. All have the
	// same shape and are F32, except y, which may have any storage; dst may be x or y.
	Combine(dst, x, y *tensor.Tensor, c Combination)

	Optimizers
}

// Combination holds the factors of Combine.
type Combination struct{ X, Y, Diagonal float64 }

// Form defines which operand of a matrix product is transposed. Both operands and the result are row-major.
type Form uint8

// The three forms used in training. With a weight W [O, I]: forward is NT (y = x·Wᵀ), the input's gradient NN (dx =
// dy·W), the weight's gradient TN (dW = dyᵀ·x).
const (
	NN Form = iota // dst [M, N] = a [M, K] · b [K, N]
	NT             // dst [M, N] = a [M, K] · b [N, K]ᵀ
	TN             // dst [M, N] = a [K, M]ᵀ · b [K, N]
)

// String returns nn, nt or tn.
func (f Form) String() string { return [...]string{"nn", "nt", "tn"}[f] }

// MatMulOptions control the computation and storage of a product.
type MatMulOptions struct {
	// Operand is the format to which operands are rounded before the multiplication: BF16, F16, TF32 (ties away from
	// zero), F32, or F64 in the reference mode. Operands stored in BF16 or F16 are not rounded again. Products are
	// summed in F32 (F64 for F64).
	Operand tensor.DType
	// Scale multiplies the sums before they are stored or added: dst = Scale·(a·b). 0 means 1.
	Scale float64
	// Accumulate adds to dst instead of overwriting it.
	Accumulate bool
	// Bias [N], F32 (F64 for F64), unless nil, is added to every row: dst = Scale·(a·b) + Bias. It may be rounded to
	// dst's format first.
	Bias *tensor.Tensor
	// Symmetric promises that the product, and the matrix that it is added to, are symmetric, such as a·aᵀ or the
	// square of a symmetric matrix. The device may then compute only about half of it; the result is the same, bit for
	// bit.
	Symmetric bool
	// FP8 promises that all numbers of a, and of b, are numbers of an FP8 format (F8E4M3 or F8E5M2) stored in BF16,
	// so that a device may multiply them in that format. The zero value promises nothing.
	FP8 [2]tensor.DType
}

// Heads describes the columns of a fused projection [N, (H+2K)·E].
type Heads struct {
	Q, KV int // number of query heads H and of key-value heads K; K divides H
	Size  int // elements per head E
	// Scale multiplies attention's scores; 0 means 1/√E.
	Scale float64
	// Softcap above 0 caps the scaled scores s of attention, before the mask: c·tanh(s/c) (Gemma 2, arXiv 2408.00118).
	// It cannot be combined with Mask.Slopes.
	Softcap float64
	// FP8 rounds the probabilities p of attention to E4M3 before their product with the values, to 2⁻⁸·E4M3(2⁸·p),
	// where p is 1 for the largest score so far (FlashAttention-3, Shah et al. 2024, arXiv 2407.08608). The sums that
	// divide the results are of the unrounded p, and gradients pass through the rounding unchanged. It needs BF16
	// storage.
	FP8 bool
	// Interleaved selects the pairs of RoPE. The two layouts are equivalent if the rows of the query and key weights
	// are permuted within a head.
	Interleaved bool
	// Rule says how linear attention adds a token to its state.
	Rule LinearRule
}

// ScoreScale returns the factor of attention's scores.
func (h Heads) ScoreScale() float64 {
	if h.Scale == 0 {
		return 1 / math.Sqrt(float64(h.Size))
	}
	return h.Scale
}

// Cols returns (H+2K)·E.
func (h Heads) Cols() int { return (h.Q + 2*h.KV) * h.Size }

// Mask defines the keys that a query sees. Token i of a row sees key j of the same row if Start[i] <= j <= i.
type Mask struct {
	Len int // T, tokens per row; the batch has N/T rows
	// Start [N] (I32) is the position within its row at which the token's document begins. Nil means 0: plain causal
	// attention.
	Start *tensor.Tensor
	// Layout, unless nil, restricts the keys further, by head.
	Layout *Layout
	// Slopes [H], unless nil, are the slopes of ALiBi (Press et al. 2022, arXiv 2108.12409): the score of query i and
	// key j is lowered by Slopes[h]·(i−j).
	Slopes []float64
	// Sinks [H], F32 (F64 for F64), unless nil, are logits of a key that every query of a head sees, without a value:
	// the softmax divides by Σ exp(score) + exp(Sinks[h]), and so does the log-sum-exp.
	Sinks *tensor.Tensor
}

// Ignored is the target of a token without a loss. Elsewhere is the id or target of a token whose row of a table, or
// column of logits, is in a part that this device does not have.
const (
	Ignored   = -100
	Elsewhere = -101
)

// LossOptions are additions to the cross-entropy. The zero value adds nothing.
type LossOptions struct {
	// Softcap above 0 means that the logits z come from Softcap with this limit. The gradient is then that of the
	// uncapped logits, that is, it is multiplied by 1 − (z/Softcap)².
	Softcap float64
	// ZLoss is the coefficient of log²Z, Z = Σ exp(logits), in the differentiated loss (Chowdhery et al. 2022, arXiv
	// 2204.02311): it adds 2·ZLoss·log Z·softmax(logits) to the gradient. loss remains the cross-entropy.
	ZLoss float64
	// Scale multiplies the gradient before it is rounded to the dtype of dlogits; 0 means 1.
	Scale float64
	// LogZ [n], unless nil, receives log Z of each row, 0 where ignored.
	LogZ *tensor.Tensor
	// Behind [n], unless nil, receives how far each target's logit is below the highest of its row: 0 where the target
	// is the most likely column, or ignored. Targets must not be elsewhere.
	Behind *tensor.Tensor
	// Given [n], unless nil, is log Z of whole rows, of which logits holds only some columns. CrossEntropy then
	// computes only the gradient of these columns; loss, LogZ and Behind are not written and may be nil.
	Given *tensor.Tensor
	// Labels, unless it is the zero RNG, replaces targets that are not ignored by labels sampled from
	// softmax(logits): row r takes the first label whose cumulative probability exceeds number FirstLabel + r of the
	// stream.
	Labels     tensor.RNG
	FirstLabel uint64
	// Teacher, unless nil, makes the differentiated loss of a row (1−α)·CE + α·τ²·KL, with another model's
	// distribution. loss remains the cross-entropy. It needs a dlogits, and works without Given and Labels.
	Teacher *Teacher
}

// A Teacher holds another model's predictions for rows of logits (Hinton et al. 2015, arXiv 1503.02531), as k+1
// outcomes: the k likeliest columns, and all others together, so that the probabilities of a row sum to 1. The
// divergence of these outcomes is
//
//	KL = Σ_i p_i·log(p_i/q_i) + p_rest·log(p_rest/q_rest),  q = softmax(z/τ)
//
// for logits z. It is never above that of the whole distributions, and equals it with k = V.
type Teacher struct {
	IDs  *tensor.Tensor // [n, k] I32: the columns
	P    *tensor.Tensor // [n, k] F32 (F64 for F64): their probabilities at temperature τ
	Rest *tensor.Tensor // [n]: the probability of all others
	KL   *tensor.Tensor // [n], written: the divergence in nats, without α and τ²; 0 where the target is ignored

	Temperature float64 // τ
	Weight      float64 // α, from 0 to 1
}

// RouteOptions describe Route's result and the losses of a router. The zero value has no losses.
type RouteOptions struct {
	Normalise bool // weights were divided by their sum
	// Balance is the coefficient of Σ_i counts[i]·p[n, i], added to the loss of every token n: with counts as
	// constants, the load-balancing loss of GShard (Lepikhin et al. 2020, arXiv 2006.16668) and Switch Transformer
	// (Fedus et al. 2021, arXiv 2101.03961) without its factors.
	Balance float64
	// ZLoss is the coefficient of log²Z in the loss of every token (Zoph et al. 2022, arXiv 2202.08906).
	ZLoss float64
}

// Dropout holds random factors (Srivastava et al. 2014), Scale or 0, for rows of D elements. They are a pure function
// of the place, so they are recomputed where needed and never stored. Element j of row r, counted from Row, survives
// if its 16-bit number is below Keep. The number is half h (0 the lower) of word w of RNG.Block((Row+r)·2³² +
// Site·2¹⁶ + 16·g + l), where j = 128·g + 32·w + 16·h + l. If Keep is 65536 no random numbers are drawn and every
// factor is Scale.
type Dropout struct {
	RNG   tensor.RNG
	Site  int // number of the place in the model, below 2¹⁶
	Row   int // index of the tensor's first row among the rows of the step, below 2³²
	Keep  int // expected number of survivors out of 65536 elements
	Scale float64
	Add   bool // add to dst instead of overwriting it
}
