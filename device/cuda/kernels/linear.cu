// Linear attention forward, and its states for backward: see linear.cuh.

#include "linear.cuh"

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
