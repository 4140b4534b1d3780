// Linear attention backward: see linear.cuh.

#include "linear.cuh"

const int few = sizeof(A) == 4 ? 2 : 1; // blocks that a multiprocessor has registers for, at least

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
		for (int k = 0; k < 4; k++) sum = fused(x[k], y[k], sum);
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
		for (int j = 0; j < 4; j++) dot = fused(x[i][j], y[i][j], dot);
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
		dgates[t * K + kv] = begins ? A(0) : (A)(x / (1 + exp((double)gates[t * K + kv]))); // 1 − g = sigmoid(−logit)
	}
}
