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

const int chunk = 64;         // C: device.LinearChunk
const int side = 64;          // of a tile
const int depth = 32;         // of the inner dimension at a time
const int stride = side + 4;  // of a row in shared memory
const int threads = 256;      // 16×16, each with 4×4 elements of a tile
const int few = sizeof(A) == 4 ? 2 : 1; // blocks that a multiprocessor has registers for, at least

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

// gate returns sigmoid of a token's logit, 1 without gates.
DEVICE A gate(const tokens &s, int p, int kv) {
	if (!s.gates || p >= s.end) return 1;
	const A x = p < s.first ? s.kept_gates[(i64)(p % chunk) * s.K + kv] : s.gates[(i64)(p - s.first) * s.K + kv];
	return 1 / (1 + exp_of(-x));
}

DEVICE int document(const tokens &s, int p) { return s.start ? s.start[p - s.first] : 0; }

// phi is elu(x) + 1, slope its derivative.
DEVICE A phi(A x) { return x > 0 ? x + 1 : exp_of(x); }
DEVICE A slope(A x) { return x > 0 ? A(1) : exp_of(x); }

// quad reads four neighbours, of which n are there; the rest are zeros. p may be null.
template <class S> DEVICE void quad(A (&v)[4], const S *p, int n) {
	constexpr int V = sizeof(S) < 8 ? 4 : 2;
	if (p && n >= 4 && (reinterpret_cast<u64>(p) & (V * sizeof(S) - 1)) == 0) {
#pragma unroll
		for (int i = 0; i < 4; i += V) {
			const vec<S, V> x = load_vec<S, V>(p + i);
#pragma unroll
			for (int j = 0; j < V; j++) v[i + j] = widen(x.v[j]);
		}
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++) v[i] = p && i < n ? widen(p[i]) : A(0);
}

// put_quad writes the first n of four neighbours.
template <class S> DEVICE void put_quad(S *p, const A (&v)[4], int n) {
	constexpr int V = sizeof(S) < 8 ? 4 : 2;
	if (n >= 4 && (reinterpret_cast<u64>(p) & (V * sizeof(S) - 1)) == 0) {
#pragma unroll
		for (int i = 0; i < 4; i += V) {
			vec<S, V> x;
#pragma unroll
			for (int j = 0; j < V; j++) narrow(x.v[j], v[i + j]);
			store_vec(p + i, x);
		}
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++)
		if (i < n) narrow(p[i], v[i]);
}

// features reads four elements of φ.
DEVICE void features(A (&v)[4], const T *p, int n) {
	quad(v, p, n);
#pragma unroll
	for (int i = 0; i < 4; i++) v[i] = p && i < n ? phi(v[i]) : A(0);
}

DEVICE void times(A (&v)[4], A x) {
#pragma unroll
	for (int i = 0; i < 4; i++) v[i] *= x;
}

// An operand of a product is a function (v, row, col) that reads four neighbours of a row of a matrix. With along the inner dimension of the
// product goes along its rows, else down its columns. A thread reads two quads of a slice of the inner dimension, and puts them into a
// tile [depth, stride].
template <bool along, class M> DEVICE void fetch(A (&v)[2][4], const M &m, int k0) {
	const int t = threadIdx.x;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (along) m(v[i], t / 8 + 32 * i, k0 + t % 8 * 4);
		else m(v[i], k0 + t / 16 + 16 * i, t % 16 * 4);
	}
}
template <bool along> DEVICE void put(A *tile, const A (&v)[2][4]) {
	const int t = threadIdx.x;
#pragma unroll
	for (int i = 0; i < 2; i++)
#pragma unroll
		for (int j = 0; j < 4; j++) {
			if (along) tile[(t % 8 * 4 + j) * stride + t / 8 + 32 * i] = v[i][j];
			else tile[(t / 16 + 16 * i) * stride + t % 16 * 4 + j] = v[i][j];
		}
}

// row and col are where a thread's elements of a tile begin.
DEVICE int row0() { return (int)threadIdx.x / 16 * 4; }
DEVICE int col0() { return (int)threadIdx.x % 16 * 4; }

// add_products adds those of tiles a [n, rows] and b [n, cols].
DEVICE void add_products(A (&sum)[4][4], const A *a, const A *b, int n) {
#pragma unroll 8
	for (int k = 0; k < n; k++) {
		const vec<A, 4> x = load_vec<A, 4>(a + k * stride + row0()), y = load_vec<A, 4>(b + k * stride + col0());
#pragma unroll
		for (int i = 0; i < 4; i++)
#pragma unroll
			for (int j = 0; j < 4; j++) sum[i][j] += x.v[i] * y.v[j];
	}
}

// multiply adds the product of two operands to a tile of sums; its slices go through two tiles of shared memory. seen is given each slice
// of b, [depth, stride], and its place along the inner dimension.
struct ignored {
	__device__ void operator()(const A *, int) const {}
};
template <bool a_along, bool b_along, class MA, class MB, class F = ignored>
DEVICE void multiply(A (&sum)[4][4], A *shared, const MA &a, const MB &b, int inner, const F &seen = F()) {
	A *const at = shared, *const bt = shared + depth * stride;
	A x[2][4], y[2][4];
	fetch<a_along>(x, a, 0);
	fetch<b_along>(y, b, 0);
	for (int k = 0; k < inner; k += depth) {
		__syncthreads();
		put<a_along>(at, x);
		put<b_along>(bt, y);
		__syncthreads();
		if (k + depth < inner) {
			fetch<a_along>(x, a, k + depth);
			fetch<b_along>(y, b, k + depth);
		}
		add_products(sum, at, bt, depth);
		seen(bt, k);
	}
}

// multiply_scores adds the product of the transpose of w, a tile [C, rows] in shared memory, and b [C, cols].
template <class MB> DEVICE void multiply_scores(A (&sum)[4][4], A *shared, const A *w, const MB &b) {
	A y[2][4];
	for (int k = 0; k < chunk; k += depth) {
		fetch<false>(y, b, k);
		__syncthreads();
		put<false>(shared, y);
		__syncthreads();
		add_products(sum, w + k * stride, shared, depth);
	}
}

DEVICE void zeros(A (&sum)[4][4]) {
#pragma unroll
	for (int i = 0; i < 4; i++)
#pragma unroll
		for (int j = 0; j < 4; j++) sum[i][j] = 0;
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

// store_scores writes a thread's elements to w [rows, stride].
DEVICE void store_scores(A *w, const A (&sum)[4][4]) {
#pragma unroll
	for (int i = 0; i < 4; i++) {
		vec<A, 4> x;
#pragma unroll
		for (int j = 0; j < 4; j++) x.v[j] = sum[i][j];
		store_vec(w + (row0() + i) * stride + col0(), x);
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

// linear_states writes Vᵀ·(β∘K̂) and Σ β∘K̂ of the first `chunks` chunks of each row and key-value head to the slots of their numbers, and Γ to
// fades [B, K, slots]. Blocks are chunks·K·B × tiles of [E, E].
KERNEL linear_states(A *states, A *fades, TOKENS, i64 chunks, i64 slots) {
	SHARED(A, shared);
	__shared__ decays d;
	const place b = this_place(chunks, K);
	const tokens s = THE_TOKENS(b.row);
	const int p = (s.first / chunk + b.chunk) * chunk, kv = b.head, tiles = (s.E + side - 1) / side;
	const int e0 = blockIdx.y / tiles * side, d0 = blockIdx.y % tiles * side;
	settle(d, s, p, kv);
	__syncthreads();
	A sum[4][4], z[4] = {0, 0, 0, 0};
	zeros(sum);
	auto keys = [&](A (&v)[4], int j, int c) {
		features(v, key(s, p + j, kv) ? key(s, p + j, kv) + d0 + c : nullptr, s.E - d0 - c);
		times(v, d.after[j]);
	};
	multiply<false, false>(sum, shared, [&](A (&v)[4], int j, int c) {
		const T *x = value(s, p + j, kv);
		quad(v, x ? x + e0 + c : nullptr, s.E - e0 - c);
	}, keys, chunk, [&](const A *slice, int) { add_row(z, slice, [](int) { return A(1); }); });
	store_state(state_at(states, b.row, kv, b.chunk, s, slots), sum, z, s.E, e0, d0);
	if (blockIdx.y == 0 && threadIdx.x == 0) fades[((i64)b.row * K + kv) * slots + b.chunk] = d.upto[chunk - 1];
}

// linear_scan turns what the first `chunks` slots hold of each chunk into the state before it, state ← fade·state + that, beginning with that of
// initial [B, K, size], null for zeros, and leaves the last state in final, unless it is null. backward goes from the last
// slot to the first. It moves 12 bytes an element. Blocks are size/threads × B·K.
KERNEL linear_scan(A *states, const A *fades, const A *initial, A *final, i64 chunks, i64 slots, i64 size, i64 backward) {
	const i64 at = global_thread(), head = blockIdx.y;
	if (at >= size) return;
	A *const mine = states + head * slots * size + at;
	const A *const fade = fades + head * slots;
	A state = initial ? initial[head * size + at] : A(0);
	const int batch = 8; // in flight at once
	for (i64 c0 = 0; c0 < slots; c0 += batch) {
		A x[batch];
#pragma unroll
		for (int i = 0; i < batch; i++) {
			const i64 c = backward ? slots - 1 - c0 - i : c0 + i;
			x[i] = c0 + i < chunks ? mine[c * size] : A(0);
		}
#pragma unroll
		for (int i = 0; i < batch; i++) {
			if (c0 + i >= slots) break;
			const i64 c = backward ? slots - 1 - c0 - i : c0 + i;
			mine[c * size] = state;
			if (c0 + i >= chunks) break;
			state = fade[c] != 0 ? fade[c] * state + x[i] : x[i];
		}
	}
	if (final) final[head * size + at] = state;
}

// linear_out writes out [B·length, H·E], and norm [H, B·length] unless it is null. Blocks are chunks·H·B × parts of 64 columns.
KERNEL linear_out(T *out, A *norm, TOKENS, const A *states, i64 chunks, i64 batch) {
	SHARED(A, shared);
	A *const w = shared + 2 * depth * stride;
	__shared__ decays d;
	__shared__ A quarters[4 * chunk], sums[chunk];
	const place b = this_place(chunks, H);
	const tokens s = THE_TOKENS(b.row);
	const int p = (s.first / chunk + b.chunk) * chunk, h = b.head, kv = h * s.K / s.H, e0 = blockIdx.y * side;
	const A *const state = state_at(const_cast<A *>(states), b.row, kv, b.chunk, s, chunks);
	settle(d, s, p, kv);
	A sum[4][4];
	zeros(sum);
	auto queries = [&](A (&v)[4], int i, int c) {
		const T *x = query(s, p + i, h);
		features(v, x ? x + c : nullptr, s.E - c);
	};
	multiply<true, true>(sum, shared, [&](A (&v)[4], int j, int c) {
		const T *x = key(s, p + j, kv);
		features(v, x ? x + c : nullptr, s.E - c);
	}, queries, s.E);
	store_scores(w, sum);
	__syncthreads();
	weigh_queries(w, quarters, d, s.gates != nullptr);
	__syncthreads();
	{ // four threads to a query
		const int i = threadIdx.x / 4, part = threadIdx.x % 4;
		A of_state = 0;
		for (int c = part * 4; p > 0 && c < s.E; c += 16) {
			A v[4], z[4];
			queries(v, i, c);
			quad(z, state + (i64)s.E * s.E + c, s.E - c);
#pragma unroll
			for (int k = 0; k < 4; k++) of_state += v[k] * z[k];
		}
		of_state += __shfl_xor_sync(all_lanes, of_state, 1);
		of_state += __shfl_xor_sync(all_lanes, of_state, 2);
		if (part == 0) {
			A n = quarters[3 * chunk + i] + quarters[2 * chunk + i] + quarters[chunk + i] + quarters[i];
			if (d.upto[i] != 0) n += d.upto[i] * of_state;
			sums[i] = n + A(1e-6);
		}
	}
	zeros(sum);
	if (p > 0)
		multiply<true, true>(sum, shared, queries, [&](A (&v)[4], int e, int c) {
			quad(v, e0 + e < s.E ? state + (i64)(e0 + e) * s.E + c : nullptr, s.E - c);
		}, s.E);
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const A upto = d.upto[row0() + i];
#pragma unroll
		for (int j = 0; j < 4; j++) sum[i][j] = upto != 0 ? upto * sum[i][j] : A(0);
	}
	multiply_scores(sum, shared, w, [&](A (&v)[4], int j, int c) {
		const T *x = value(s, p + j, kv);
		quad(v, x ? x + e0 + c : nullptr, s.E - e0 - c);
	});
	const i64 token = b.row * length + p - first; // of the chunk's first
#pragma unroll
	for (int i = 0; i < 4; i++) {
		if (!query(s, p + row0() + i, h)) continue;
		const A n = sums[row0() + i];
#pragma unroll
		for (int j = 0; j < 4; j++) sum[i][j] /= n;
		put_quad(out + ((token + row0() + i) * H + h) * E + e0 + col0(), sum[i], s.E - e0 - col0());
		if (norm && e0 == 0 && col0() == 0) norm[h * batch * length + token + row0() + i] = n;
	}
}

// linear_keep writes the keys, values and gates of the tokens from position `from` on to the cache. Blocks are those tokens.
KERNEL linear_keep(T *kept, A *kept_gates, const T *qkv, const A *gates, i64 from, i64 first, i64 H, i64 K, i64 E) {
	const i64 p = from + blockIdx.x, cols = 2 * K * E;
	const T *const x = qkv + (p - first) * (H * E + cols) + H * E;
	for (i64 c = threadIdx.x; c < cols; c += blockDim.x) kept[p % chunk * cols + c] = x[c];
	if (gates)
		for (i64 c = threadIdx.x; c < K; c += blockDim.x) kept_gates[p % chunk * K + c] = gates[(p - first) * K + c];
}

// linear_deltas writes δ [H, tokens], one to a warp. It moves the elements of dout and out.
KERNEL linear_deltas(A *deltas, const T *dout, const T *out, const A *norm, i64 tokens, i64 H, i64 E) {
	const i64 i = global_thread() / 32; // in the order of out
	if (i >= tokens * H) return;
	A sum = 0;
	for (i64 c = lane() * 4; c < E; c += 128) {
		A x[4], y[4];
		quad(x, dout + i * E + c, (int)(E - c));
		quad(y, out + i * E + c, (int)(E - c));
#pragma unroll
		for (int k = 0; k < 4; k++) sum += x[k] * y[k];
	}
	sum = warp_sum(sum);
	const i64 at = i % H * tokens + i / H;
	if (lane() == 0) deltas[at] = sum / norm[at];
}

// What the queries of a chunk and head get: dout, 1/n and δ.
struct received {
	const T *dout; // of the chunk's first token
	A inverse[chunk], delta[chunk];
};

// receive reads what n tokens from number `token` of the batch get. Threads must meet before it is read.
DEVICE void receive(received &r, const T *dout, const A *norm, const A *deltas, i64 token, i64 tokens, int n, const struct tokens &s, int h) {
	const int t = threadIdx.x;
	r.dout = dout + (token * s.H + h) * s.E;
	if (t >= chunk) return;
	r.inverse[t] = t < n ? 1 / norm[h * tokens + token + t] : A(0);
	r.delta[t] = t < n ? deltas[h * tokens + token + t] : A(0);
}

// of_output reads four elements of U.
DEVICE void of_output(A (&v)[4], const received &r, const struct tokens &s, int p, int i, int c) {
	quad(v, p + i < s.end ? r.dout + (i64)i * s.H * s.E + c : nullptr, s.E - c);
	times(v, r.inverse[i]);
}

// linear_grad_states writes Uᵀ·(γ∘Q̂) and −Σ δ∘γ∘Q̂, summed over a group's heads, of all chunks but the first to the slots of their numbers, and
// Γ to fades. Blocks are (slots−1)·K·B × tiles of [E, E].
KERNEL __launch_bounds__(threads, few + 1) linear_grad_states(A *states, A *fades, TOKENS, const T *dout, const A *norm, const A *deltas, i64 slots, i64 batch) {
	SHARED(A, shared);
	__shared__ decays d;
	__shared__ received r;
	place b = this_place(slots - 1, K);
	b.chunk++;
	const tokens s = THE_TOKENS(b.row);
	const int p = b.chunk * chunk, kv = b.head, tiles = (s.E + side - 1) / side;
	const int e0 = blockIdx.y / tiles * side, d0 = blockIdx.y % tiles * side;
	settle(d, s, p, kv);
	A sum[4][4], z[4] = {0, 0, 0, 0};
	zeros(sum);
	for (int h = kv * (s.H / s.K); h < (kv + 1) * (s.H / s.K); h++) {
		__syncthreads();
		receive(r, dout, norm, deltas, b.row * length + p, batch * length, s.end - p, s, h);
		__syncthreads();
		auto queries = [&](A (&v)[4], int i, int c) {
			const T *x = query(s, p + i, h);
			features(v, x ? x + d0 + c : nullptr, s.E - d0 - c);
			times(v, d.upto[i]);
		};
		multiply<false, false>(sum, shared, [&](A (&v)[4], int i, int c) { of_output(v, r, s, p, i, e0 + c); }, queries, chunk,
			[&](const A *slice, int k0) { add_row(z, slice, [&](int k) { return -r.delta[k0 + k]; }); });
	}
	store_state(state_at(states, b.row, kv, b.chunk, s, slots), sum, z, s.E, e0, d0);
	if (blockIdx.y == 0 && threadIdx.x == 0) fades[((i64)b.row * K + kv) * slots + b.chunk] = d.upto[chunk - 1];
}

// store_dots writes the sums over a tile's columns of x·y, for n rows, to dots.
DEVICE void store_dots(A *dots, const A (&x)[4][4], const A (&y)[4][4], int n) {
#pragma unroll
	for (int i = 0; i < 4; i++) {
		A dot = 0;
#pragma unroll
		for (int j = 0; j < 4; j++) dot += x[i][j] * y[i][j];
		for (int lanes = 8; lanes > 0; lanes /= 2) dot += __shfl_xor_sync(all_lanes, dot, lanes);
		if (col0() == 0 && row0() + i < n) dots[row0() + i] = dot;
	}
}

// store_grad writes dφ·φ'(x) for four elements of a head at x, unless that is null, and reads φ(x) into f.
DEVICE void store_grad(T *to, const T *x, const A (&sum)[4], A (&f)[4], int n) {
	A v[4];
	quad(v, x, n);
	features(f, x, n);
#pragma unroll
	for (int j = 0; j < 4; j++) v[j] = slope(v[j]) * sum[j];
	if (x) put_quad(to, v, n);
}

// linear_grad_queries writes the queries' part of dqkv, and φ(q)·dQ̂ over each 64 columns to dots [parts, H, B·length] unless it is null. Blocks are
// chunks·H·B × parts of 64 columns.
KERNEL linear_grad_queries(T *dqkv, A *dots, TOKENS, const T *dout, const A *norm, const A *deltas, const A *states, i64 chunks, i64 batch) {
	SHARED(A, shared);
	A *const w = shared + 2 * depth * stride;
	__shared__ decays d;
	__shared__ received r;
	__shared__ A quarters[4 * chunk];
	const place b = this_place(chunks, H);
	const tokens s = THE_TOKENS(b.row);
	const int p = b.chunk * chunk, h = b.head, kv = h * s.K / s.H, d0 = blockIdx.y * side;
	const i64 token = b.row * length + p, tokens = batch * length;
	const A *const state = state_at(const_cast<A *>(states), b.row, kv, b.chunk, s, chunks);
	settle(d, s, p, kv);
	receive(r, dout, norm, deltas, token, tokens, s.end - p, s, h);
	__syncthreads();
	A sum[4][4];
	zeros(sum);
	auto outputs = [&](A (&v)[4], int i, int c) { of_output(v, r, s, p, i, c); };
	multiply<true, true>(sum, shared, [&](A (&v)[4], int j, int c) {
		const T *x = value(s, p + j, kv);
		quad(v, x ? x + c : nullptr, s.E - c);
	}, outputs, s.E);
#pragma unroll
	for (int i = 0; i < 4; i++)
#pragma unroll
		for (int j = 0; j < 4; j++) sum[i][j] -= r.delta[col0() + j];
	store_scores(w, sum);
	__syncthreads();
	weigh_queries(w, quarters, d, s.gates != nullptr);
	zeros(sum);
	if (p > 0)
		multiply<true, false>(sum, shared, outputs, [&](A (&v)[4], int e, int c) {
			quad(v, e < s.E ? state + (i64)e * s.E + d0 + c : nullptr, s.E - d0 - c);
		}, s.E);
	A z[4];
	quad(z, p > 0 ? state + (i64)s.E * s.E + d0 + col0() : nullptr, s.E - d0 - col0());
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const A upto = d.upto[row0() + i], delta = r.delta[row0() + i];
#pragma unroll
		for (int j = 0; j < 4; j++) sum[i][j] = upto != 0 ? upto * (sum[i][j] - delta * z[j]) : A(0);
	}
	multiply_scores(sum, shared, w, [&](A (&v)[4], int j, int c) {
		const T *x = key(s, p + j, kv);
		features(v, x ? x + d0 + c : nullptr, s.E - d0 - c);
	});
	A f[4][4];
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const T *x = query(s, p + row0() + i, h);
		store_grad(x ? dqkv + (x - qkv) + d0 + col0() : nullptr, x ? x + d0 + col0() : nullptr, sum[i], f[i], s.E - d0 - col0());
	}
	if (dots) store_dots(dots + (blockIdx.y * H + h) * tokens + token, f, sum, s.end - p);
}

// linear_grad_keys writes the part of dqkv of the keys in the first blocks, of the values in the last, and φ(k)·dK̂ over each 64 columns to
// dots [parts, K, B·length] unless it is null. Blocks are chunks·K·B × twice the parts of 64 columns.
KERNEL __launch_bounds__(threads, few) linear_grad_keys(T *dqkv, A *dots, TOKENS, const T *dout, const A *norm, const A *deltas, const A *states, i64 chunks, i64 batch) {
	SHARED(A, shared);
	A *const w = shared + 2 * depth * stride;
	__shared__ decays d;
	__shared__ received r;
	const place b = this_place(chunks, K);
	const tokens s = THE_TOKENS(b.row);
	const bool of_keys = blockIdx.y < gridDim.y / 2;
	const int p = b.chunk * chunk, kv = b.head, c0 = blockIdx.y % (gridDim.y / 2) * side;
	const i64 token = b.row * length + p, tokens = batch * length;
	const A *const state = state_at(const_cast<A *>(states), b.row, kv, b.chunk, s, chunks);
	settle(d, s, p, kv);
	__syncthreads();
	auto keys = [&](A (&v)[4], int j, int c) {
		const T *x = key(s, p + j, kv);
		features(v, x ? x + c : nullptr, s.E - c);
	};
	auto values = [&](A (&v)[4], int j, int c) {
		const T *x = value(s, p + j, kv);
		quad(v, x ? x + c : nullptr, s.E - c);
	};
	A sum[4][4], z[4] = {0, 0, 0, 0};
	zeros(sum);
	if (p + chunk < s.end) {
		if (of_keys) {
			multiply<true, false>(sum, shared, values, [&](A (&v)[4], int e, int c) {
				quad(v, e < s.E ? state + (i64)e * s.E + c0 + c : nullptr, s.E - c0 - c);
			}, s.E);
			quad(z, state + (i64)s.E * s.E + c0 + col0(), s.E - c0 - col0());
		} else {
			multiply<true, true>(sum, shared, keys, [&](A (&v)[4], int e, int c) {
				quad(v, c0 + e < s.E ? state + (i64)(c0 + e) * s.E + c : nullptr, s.E - c);
			}, s.E);
		}
	}
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const A after = d.after[row0() + i];
#pragma unroll
		for (int j = 0; j < 4; j++) sum[i][j] = after != 0 ? after * (sum[i][j] + z[j]) : A(0);
	}
	for (int h = kv * (s.H / s.K); h < (kv + 1) * (s.H / s.K); h++) {
		__syncthreads();
		receive(r, dout, norm, deltas, token, tokens, s.end - p, s, h);
		__syncthreads();
		auto outputs = [&](A (&v)[4], int i, int c) { of_output(v, r, s, p, i, c); };
		auto queries = [&](A (&v)[4], int i, int c) {
			const T *x = query(s, p + i, h);
			features(v, x ? x + c : nullptr, s.E - c);
		};
		A score[4][4];
		zeros(score);
		if (of_keys) multiply<true, true>(score, shared, outputs, values, s.E);
		else multiply<true, true>(score, shared, queries, keys, s.E);
		if (of_keys)
#pragma unroll
			for (int i = 0; i < 4; i++)
#pragma unroll
				for (int j = 0; j < 4; j++) score[i][j] -= r.delta[row0() + i];
		store_scores(w, score);
		__syncthreads();
		weigh_keys(w, d, s.gates != nullptr);
		if (of_keys) multiply_scores(sum, shared, w, [&](A (&v)[4], int i, int c) { queries(v, i, c0 + c); });
		else multiply_scores(sum, shared, w, [&](A (&v)[4], int i, int c) { outputs(v, i, c0 + c); });
	}
	const int left = s.E - c0 - col0();
	if (of_keys) {
		A f[4][4];
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const T *x = key(s, p + row0() + i, kv);
			store_grad(x ? dqkv + (x - qkv) + c0 + col0() : nullptr, x ? x + c0 + col0() : nullptr, sum[i], f[i], left);
		}
		if (dots) store_dots(dots + (c0 / side * K + kv) * tokens + token, f, sum, s.end - p);
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const T *x = value(s, p + row0() + i, kv);
		if (x) put_quad(dqkv + (x - qkv) + c0 + col0(), sum[i], left);
	}
}

// linear_grad_gates writes dgates [B·length, K] from the dots of queries [parts, H, B·length] and keys [parts, K, B·length]. A block is a
// warp, which has the gates of a row and key-value head, 32 tokens at a time, from the last on. A document's first gate has nothing to
// fade.
KERNEL linear_grad_gates(A *dgates, const A *of_queries, const A *of_keys, const A *gates, const int *start, i64 length, i64 H, i64 K,
		i64 batch, i64 parts) {
	const i64 kv = blockIdx.x % K, row = blockIdx.x / K, tokens = batch * length, group = H / K;
	double carry = 0; // the sum from the token after these on
	for (i64 base = (length - 1) / 32 * 32; base >= 0; base -= 32) {
		const i64 p = base + lane(), t = row * length + p;
		double x = 0;
		if (p < length) {
			for (i64 i = 0; i < parts; i++) {
				for (i64 h = kv * group; h < (kv + 1) * group; h++) x += of_queries[(i * H + h) * tokens + t];
				x -= of_keys[(i * K + kv) * tokens + t];
			}
		}
		// Sums of later lanes are added, and the carry, unless a document ends in between.
		int ends = p + 1 >= length || (start && start[t + 1] == p + 1);
		for (int d = 1; d < 32; d *= 2) {
			const double later = __shfl_down_sync(all_lanes, x, d);
			const int stop = __shfl_down_sync(all_lanes, ends, d);
			if (lane() + d < 32) {
				if (!ends) x += later;
				ends |= stop;
			}
		}
		if (!ends) x += carry;
		carry = __shfl_sync(all_lanes, x, 0);
		if (p >= length) continue;
		const bool begins = start ? start[t] == p : p == 0;
		const A open = 1 / (1 + exp_of(-gates[t * K + kv]));
		dgates[t * K + kv] = begins ? A(0) : (A)x * (1 - open);
	}
}
