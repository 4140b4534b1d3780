// Linear attention (Katharopoulos et al. 2020, arXiv 2006.16236) in chunks of C = 64 tokens, which all go at once but for the scan of
// their states. The state is [E+1, E]: Sᵀ, and below it z, the sum of keys. With φ(x) = elu(x) + 1, and of the gates in a chunk
// D_ij = g_{j+1} ⋯ g_i for j ≤ i, γ_i those up to i, β_j those after j, Γ all of them (each 1 without gates):
//
//	linear_states  Vᵀ·(β∘K̂) and Σ β∘K̂ of each chunk
//	linear_scan    the state before each chunk: S ← Γ·S + that of the chunk
//	linear_out     P = D∘(Q̂·K̂ᵀ), n = rowsum(P) + γ∘(Q̂·z) + 10⁻⁶, O = (P·V + γ∘(Q̂·S)) / n
//
// and backward, with U = dO/n, δ = rowsum(U∘O), W = D∘(U·Vᵀ − δ), and dS the gradient of the state after a chunk:
//
//	linear_deltas       δ
//	linear_grad_states  Uᵀ·(γ∘Q̂) and −Σ δ∘γ∘Q̂ of each chunk, which linear_scan adds up from the last chunk on
//	linear_grad_queries dQ̂ = γ∘(U·S − δ·z) + W·K̂
//	linear_grad_keys    dK̂ = β∘(V·dS + dz) + Wᵀ·Q̂,  dV = β∘(K̂·dSᵀ) + Pᵀ·U, summed over the heads of a group
//	linear_grad_gates   ∂/∂log g_t = Σ_{s≥t, in the document} (φ(q_s)·dQ̂_s − φ(k_s)·dK̂_s)
//
// A document that begins within a chunk ends what comes from before: D, γ, β and Γ are 0 across its beginning.
// Everything is in A. Each block makes a tile of 64×64 elements of a product; where E is above 64, scores are made again for each
// 64 columns. FLOPs of a chunk: for each head 2·C·(2·C·E + E²) forward and 2·C·(6·C·E + 2·E²) backward, and for each key-value head
// 2·C·E² and 6·C·E². Sums are in the order of tokens, of elements, and of chunks.

#include "linear_tile.cuh"

const int chunk = 64; // C: device.LinearChunk

// TOKENS are the parameters of kernels that say what tokens there are: B rows of qkv [B·length, (H+2K)·E] and gates [B·length, K],
// null without. The first of a row is at position `first` of its sequence, and what came since the last multiple of C
// tokens is in kept [C, 2K·E] and kept_gates [C, K]. start is where documents begin, null without.
#define TOKENS                                                                                         \
	const T *qkv, const A *gates, const int *start, const T *kept, const A *kept_gates, i64 length,    \
		i64 first, i64 H, i64 K, i64 E
#define THE_TOKENS(row) tokens_of(row, qkv, gates, start, kept, kept_gates, length, first, H, K, E)

// A row of tokens.
struct tokens {
	const T *qkv, *kept;
	const A *gates, *kept_gates;
	const int *start;
	int first, end; // positions
	int H, K, E;
};

DEVICE tokens tokens_of(i64 row, const T *qkv, const A *gates, const int *start, const T *kept, const A *kept_gates, i64 length,
		i64 first, i64 H, i64 K, i64 E) {
	tokens s;
	s.qkv = qkv + row * length * (H + 2 * K) * E;
	s.kept = kept;
	s.gates = gates ? gates + row * length * K : nullptr;
	s.kept_gates = kept_gates;
	s.start = start ? start + row * length : nullptr;
	s.first = (int)first;
	s.end = (int)(first + length);
	s.H = (int)H;
	s.K = (int)K;
	s.E = (int)E;
	return s;
}

// query, key and value return where a head of the token at a position begins; null if it is none of these.
DEVICE const T *head_at(const tokens &s, int p, int head) {
	return s.qkv + ((i64)(p - s.first) * (s.H + 2 * s.K) + head) * s.E;
}
DEVICE const T *query(const tokens &s, int p, int h) { return p < s.first || p >= s.end ? nullptr : head_at(s, p, h); }
DEVICE const T *pair_at(const tokens &s, int p, int head) {
	if (p >= s.end) return nullptr;
	return p < s.first ? s.kept + ((i64)(p % chunk) * 2 * s.K + head) * s.E : head_at(s, p, s.H + head);
}
DEVICE const T *key(const tokens &s, int p, int kv) { return pair_at(s, p, kv); }
DEVICE const T *value(const tokens &s, int p, int kv) { return pair_at(s, p, s.K + kv); }

// gate returns sigmoid of a token's logit, 1 without gates. It is made in double, since many are multiplied.
DEVICE A gate(const tokens &s, int p, int kv) {
	if (!s.gates || p >= s.end) return 1;
	const double x = p < s.first ? s.kept_gates[(i64)(p % chunk) * s.K + kv] : s.gates[(i64)(p - s.first) * s.K + kv];
	return (A)(1 / (1 + exp(-x)));
}

DEVICE int document(const tokens &s, int p) { return s.start ? s.start[p - s.first] : 0; }

// phi is elu(x) + 1, slope its derivative.
DEVICE A phi(A x) { return x > 0 ? x + 1 : exp_of(x); }
DEVICE A slope(A x) { return x > 0 ? A(1) : exp_of(x); }

// features reads four elements of φ.
DEVICE void features(A (&v)[4], const T *p, int n) {
	quad(v, p, n);
#pragma unroll
	for (int i = 0; i < 4; i++) v[i] = p && i < n ? phi(v[i]) : A(0);
}

// What the gates and documents of a chunk multiply things by.
struct decays {
	A gate[chunk];
	A upto[chunk];   // γ: 0 if the document does not reach back before the chunk
	A after[chunk];  // β: 0 if it does not reach to the chunk's end
	int begin[chunk]; // the first token of the chunk that a query sees
};

// settle computes the decays of the chunk at position p. Threads must meet before they are read.
DEVICE void settle(decays &d, const tokens &s, int p, int kv) {
	const int t = threadIdx.x, last = (s.end < p + chunk ? s.end : p + chunk) - 1;
	if (t < chunk) {
		d.gate[t] = gate(s, p + t, kv);
		const int from = p + t < s.end ? document(s, p + t < s.first ? s.first : p + t) - p : chunk;
		d.begin[t] = from > 0 ? from : 0;
	}
	__syncthreads();
	if (t >= chunk) return;
	A upto = 1, after = 1;
	if (s.gates) {
		for (int i = 0; i <= t; i++) upto *= d.gate[i];
		for (int i = chunk - 1; i > t; i--) after *= d.gate[i];
	}
	const int from = p + t < s.end ? document(s, p + t < s.first ? s.first : p + t) : s.end;
	d.upto[t] = from < p ? upto : A(0);
	d.after[t] = p + t <= last && document(s, last) <= p + t ? after : A(0);
}

// weigh_queries multiplies scores w [keys, queries] by D. Four threads share a query, each with a quarter of its keys; they leave their
// sums in quarters [4, C].
DEVICE void weigh_queries(A *w, A *quarters, const decays &d, bool gated) {
	const int i = threadIdx.x % chunk, quarter = threadIdx.x / chunk, from = quarter * (chunk / 4), to = from + chunk / 4;
	A factor = 1, sum = 0;
	if (gated)
		for (int j = i; j >= to; j--) factor *= d.gate[j];
	for (int j = to - 1; j >= from; j--) {
		A &x = w[j * stride + i];
		if (j > i || j < d.begin[i]) {
			x = 0;
			continue;
		}
		x *= factor;
		sum += x;
		if (gated) factor *= d.gate[j];
	}
	quarters[quarter * chunk + i] = sum;
}

// weigh_keys multiplies scores w [queries, keys] by D.
DEVICE void weigh_keys(A *w, const decays &d, bool gated) {
	const int j = threadIdx.x % chunk, quarter = threadIdx.x / chunk, from = quarter * (chunk / 4), to = from + chunk / 4;
	A factor = 1;
	if (gated)
		for (int i = j + 1; i < from; i++) factor *= d.gate[i];
	for (int i = from; i < to; i++) {
		if (gated && i > j) factor *= d.gate[i];
		A &x = w[i * stride + j];
		x = j > i || j < d.begin[i] ? A(0) : x * factor;
	}
}

// add_row adds factor(k) times row k of a slice of an operand to what the first 16 threads have of a row of a state.
template <class F> DEVICE void add_row(A (&z)[4], const A *slice, const F &factor) {
	if (row0() > 0) return;
#pragma unroll 4
	for (int k = 0; k < depth; k++) {
		const vec<A, 4> x = load_vec<A, 4>(slice + k * stride + col0());
		const A f = factor(k);
#pragma unroll
		for (int j = 0; j < 4; j++) z[j] += f * x.v[j];
	}
}

// A place is the part of the work that a block has: a chunk, and a head (of queries or keys) of a row.
struct place {
	int chunk, head, row;
};

DEVICE place this_place(i64 chunks, i64 heads) {
	place b;
	b.chunk = (int)(blockIdx.x % chunks);
	const i64 rest = blockIdx.x / chunks;
	b.head = (int)(rest % heads);
	b.row = (int)(rest / heads);
	return b;
}

// state_at returns slot c of a row's key-value head in states [B, K, slots, E+1, E].
DEVICE A *state_at(A *states, i64 row, i64 kv, i64 c, const tokens &s, i64 slots) {
	return states + ((row * s.K + kv) * slots + c) * (s.E + 1) * s.E;
}

// store_state writes a tile of a state, and a thread's part of its last row, which the first 16 threads have for the tiles of the first 64 rows.
DEVICE void store_state(A *state, const A (&sum)[4][4], const A (&z)[4], int E, int e0, int d0) {
	const int left = E - d0 - col0();
#pragma unroll
	for (int i = 0; i < 4; i++)
		if (e0 + row0() + i < E) put_quad(state + (i64)(e0 + row0() + i) * E + d0 + col0(), sum[i], left);
	if (e0 == 0 && row0() == 0) put_quad(state + (i64)E * E + d0 + col0(), z, left);
}
