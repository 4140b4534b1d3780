// Attention on tensor cores, for heads of up to 128 elements, a multiple of 8 (FlashAttention-2, Dao 2023, arXiv 2307.08691).
//
// A block of 4 warps has ROWS queries of a head, 64 or 128, and goes over their tiles of keys: S = Q·Kᵀ, then the softmax as it grows, in
// base 2, then O += P·V. Each warp has whole rows, in fragments of 16: sums over keys need 4 lanes. S and P stay in registers, since what
// a product yields is laid out as the first operand of the next.
//
// Work: 4·E FLOPs for each query and key, of which causality hides about half. Memory traffic: Q and O once; K and V once per block
// of queries, mostly from the L2 cache: 4·E bytes for ROWS queries each. Shared memory: Q, K and V, (ROWS+128)·(2·E+16) bytes, 36 KiB
// for E = 64 and ROWS = 128. A tile of V is on its way while the products with K are taken, and the next of K during the softmax.

#include "flash.cuh"
#include "flash_mma.cuh"

const int M = ROWS / 64;             // fragments of 16 queries that a warp has
const bool HELD = E <= 64;           // whether registers hold Q, or it is read from shared memory again for each tile
const int BLOCKS = M * STEPS > 4 ? 2 : 3; // a multiprocessor has registers for

// scores sets s to Q·Kᵀ of a warp.
DEVICE void scores(float (&s)[M][8][4], const u32 (&held)[M][HELD ? STEPS : 1][4], const T *sq, const T *sk) {
#pragma unroll
	for (int m = 0; m < M; m++)
#pragma unroll
		for (int n = 0; n < 8; n++)
			s[m][n][0] = s[m][n][1] = s[m][n][2] = s[m][n][3] = 0;
#pragma unroll
	for (int step = 0; step < STEPS; step++) {
		u32 a[M][4];
#pragma unroll
		for (int m = 0; m < M; m++) {
			if (!HELD) first_operand(a[m], sq, (warp() * M + m) * 16, step);
			else for (int i = 0; i < 4; i++) a[m][i] = held[m][HELD ? step : 0][i];
		}
#pragma unroll
		for (int n = 0; n < 8; n += 2) {
			u32 b[2][2];
			along(b, sk, n * 8, step);
#pragma unroll
			for (int m = 0; m < M; m++) {
				mma(s[m][n], a[m], b[0], T());
				mma(s[m][n + 1], a[m], b[1], T());
			}
		}
	}
}

// products adds P·V of the first so many keys of a tile to o.
DEVICE void products(float (&o)[M][2 * STEPS][4], const float (&p)[M][8][4], const T *sv, int keys) {
#pragma unroll
	for (int n = 0; n < 8; n += 2) {
		if (n * 8 >= keys) break;
		u32 a[M][4];
#pragma unroll
		for (int m = 0; m < M; m++) operand_of(a[m], p[m][n], p[m][n + 1]);
#pragma unroll
		for (int step = 0; step < STEPS; step++) {
			u32 b[2][2];
			across(b, sv, n * 8, step);
#pragma unroll
			for (int m = 0; m < M; m++) {
				mma(o[m][2 * step], a[m], b[0], T());
				mma(o[m][2 * step + 1], a[m], b[1], T());
			}
		}
	}
}

KERNEL __launch_bounds__(THREADS, BLOCKS) flash_forward(T *out, float *lse, const T *q, const T *keys, const T *values, const int *start, const float *slopes, const float *sinks, PLAN,
	float *partial, float *partial_lse, i64 plan_units, i64 out_stride, i64 q_stride, i64 kv_stride, i64 length64, i64 from64, i64 ring, i64 group, i64 tokens, float scale, float limit, i64, i64 fp8) {
	SHARED(T, sq);
	T *const sk = sq + ROWS * PITCH, *const sv = sk + TILE * PITCH;
	__shared__ Slot slots[TILE];
	const Plan plan = PLANNED;
	const int head = blockIdx.y, length = length64, from = from64;
#if LAYOUT
	const Graph graph = plan.graphs[head % plan.heads];
	const int unit = graph.units - 1 - (int)blockIdx.x; // the long ones, late in the row, come first
	if (unit < 0) return;
	const Queries queries = unit_of(plan.units[graph.unit + unit], from, length);
#else
	const int first = from + (int)(gridDim.x - 1 - blockIdx.x) * ROWS;
	const Queries queries = {first, 1, min(ROWS, length - first), 0, 0, from, length};
#endif
	if (queries.first >= length || last_of(queries) < from) return;
	const i64 token = (i64)blockIdx.z * (length - from), kv = head / (int)group * E;
	q += token * q_stride + head * E;
	out += token * out_stride + head * E;
	keys += (i64)blockIdx.z * length * kv_stride + kv;
	values += (i64)blockIdx.z * length * kv_stride + kv;
	start = row_start(start, length);

	auto query_row = [&](int r) { int at = position(queries, r); return at < 0 ? -1 : at - from; };
	Walk w = walk(queries, plan, start);
	auto load_keys = [&](T *to, const T *matrix, int tile) {
#if LAYOUT || CACHED
		load_rows<TILE>(to, matrix, kv_stride, [&](int r) { int at = key_at(plan, tile, r); return at >= length ? -1 : CACHED ? at % (int)ring : at; });
#else
		load_run<TILE>(to, matrix + (i64)(tile * TILE) * kv_stride, kv_stride, length - tile * TILE);
#endif
	};
	auto load_next = [&]() {
		if (w.at >= w.end) return;
		load_keys(sk, keys, w.at);
#if LAYOUT
		const int r = threadIdx.x;
		if (r < TILE) slots[r] = slot_of(key_at(plan, w.at, r), plan.limits[plan.of_units[w.at].limits * TILE + r]);
#endif
	};

	load_rows<ROWS>(sq, q, q_stride, query_row);
	load_next();
	cp_async_commit();
	cp_async_wait<0>();
	__syncthreads();

	u32 held[M][HELD ? STEPS : 1][4];
	float o[M][2 * STEPS][4], top[M][2], sum[M][2];
	int at[M][2];
#pragma unroll
	for (int m = 0; m < M; m++) {
		for (int i = 0; HELD && i < STEPS; i++) first_operand(held[m][i], sq, (warp() * M + m) * 16, i);
#pragma unroll
		for (int n = 0; n < 2 * STEPS; n++) o[m][n][0] = o[m][n][1] = o[m][n][2] = o[m][n][3] = 0;
#pragma unroll
		for (int h = 0; h < 2; h++) {
			top[m][h] = -1e30f; // below every score, yet finite: less itself it is 0
			sum[m][h] = 0;
			at[m][h] = position(queries, (warp() * M + m) * 16 + h * 8 + lane() / 4);
		}
	}
	const float slope = SLOPES ? slopes[head] : 0.0f, unit_of_scores = SLOPES ? 1.0f : scale;

	while (w.at < w.end) {
		const int tile = w.at;
		const bool masked = !whole(w, plan);
		cp_async_wait<0>();
		__syncthreads(); // K has come, and everyone is done with V
		load_keys(sv, values, tile);
		cp_async_commit();

		// The keys that a warp's last query sees end here: what is behind them is hidden from all of the warp.
		const int seen = LAYOUT ? TILE : queries.first + (warp() + 1) * M * 16 - tile * TILE;
		float s[M][8][4];
		if (seen > 0) scores(s, held, sq, sk);
		if (CAPS && seen > 0) {
#pragma unroll
			for (int m = 0; m < M; m++)
#pragma unroll
				for (int n = 0; n < 8; n++)
#pragma unroll
					for (int i = 0; i < 4; i++) {
						float slope;
						s[m][n][i] = capped(s[m][n][i], limit, slope);
					}
		}
		if (seen > 0 && (SLOPES || masked)) {
			int begin[M][2];
#pragma unroll
			for (int m = 0; m < M; m++)
				for (int h = 0; h < 2; h++) begin[m][h] = begin_of(start, at[m][h]);
#pragma unroll
			for (int n = 0; n < 8; n++)
#pragma unroll
				for (int j = 0; j < 2; j++) {
					int r = n * 8 + lane() % 4 * 2 + j;
#if LAYOUT
					const Slot slot = slots[r];
#else
					const Slot slot = {tile * TILE + r, tile * TILE + r, NOWHERE};
#endif
#pragma unroll
					for (int m = 0; m < M; m++)
#pragma unroll
						for (int h = 0; h < 2; h++) {
							float &x = s[m][n][2 * h + j];
							if (SLOPES) x = fmaf(-slope, (float)(at[m][h] - slot.key), x * scale);
							if (masked && !sees(at[m][h], slot, begin[m][h])) x = -infinity(0.0f);
						}
				}
		}
		cp_async_wait<0>();
		__syncthreads(); // V has come, and everyone is done with K
		w.at++;
		walk_on(w, plan);
		load_next();
		cp_async_commit();

		if (seen <= 0) continue;
#pragma unroll
		for (int m = 0; m < M; m++)
#pragma unroll
			for (int h = 0; h < 2; h++) {
				float most = s[m][0][2 * h];
#pragma unroll
				for (int n = 0; n < 8; n++) most = fmaxf(most, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
				most = fmaxf(most, __shfl_xor_sync(all_lanes, most, 1));
				most = fmaxf(most, __shfl_xor_sync(all_lanes, most, 2));
				most = fmaxf(most, top[m][h]);
				const float less = exp2_fast((top[m][h] - most) * unit_of_scores), zero = most * unit_of_scores;
				float more = 0;
#pragma unroll
				for (int n = 0; n < 8; n++)
#pragma unroll
					for (int j = 0; j < 2; j++) {
						float &x = s[m][n][2 * h + j];
						x = exp2_fast(fmaf(x, unit_of_scores, -zero));
						more += x;
					}
				top[m][h] = most;
				sum[m][h] = fmaf(sum[m][h], less, more);
#pragma unroll
				for (int n = 0; n < 2 * STEPS; n++) {
					o[m][n][2 * h] *= less;
					o[m][n][2 * h + 1] *= less;
				}
			}
		if (fp8) {
#pragma unroll
			for (int m = 0; m < M; m++)
#pragma unroll
				for (int n = 0; n < 8; n++)
#pragma unroll
					for (int i = 0; i < 4; i++) s[m][n][i] = e4m3(s[m][n][i]);
		}
		if (seen >= TILE) products(o, s, sv, TILE); // without branches between
		else products(o, s, sv, seen);
	}
	cp_async_wait<0>();

#if PARTIAL
	const i64 slot = tile_of(plan, head, gridDim.y, plan_units, graph.units_before + unit) * TILE;
#endif
#pragma unroll
	for (int m = 0; m < M; m++) {
		const int r0 = (warp() * M + m) * 16;
		float factor[2];
#pragma unroll
		for (int h = 0; h < 2; h++) {
			float l = sum[m][h];
			l += __shfl_xor_sync(all_lanes, l, 1);
			l += __shfl_xor_sync(all_lanes, l, 2);
			factor[h] = l == 0 ? 0 : 1 / l;
			float z = l == 0 ? -infinity(0.0f) : fmaf(top[m][h], unit_of_scores, log2f(l));
#if !PARTIAL
			if (sinks) z = sunk(factor[h], z, sinks[head]);
#endif
			if (lane() % 4 != 0) continue;
#if PARTIAL
			partial_lse[slot + r0 + h * 8 + lane() / 4] = z;
#else
			if (lse && at[m][h] >= 0) lse[head * tokens + token + at[m][h] - from] = z * 0.6931471805599453f;
#endif
		}
#if PARTIAL
		keep(partial + slot * E, o[m], r0, factor[0], factor[1]);
#else
		stage(sq, o[m], r0, factor[0], factor[1]);
		store_rows(out, out_stride, sq, r0, query_row);
#endif
	}
}
