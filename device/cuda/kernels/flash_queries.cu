// The gradient of attention's queries on tensor cores, for heads of up to 128 elements, a multiple of 8. With the log-sum-exps L of rows and
// delta = rowsum(dO·O) (flash_join.cu):
//
//	P = exp(S − L), dS = P ∘ (dO·Vᵀ − delta), dQ = scale · dS·K
//
// A block of 4 warps has ROWS queries, as forward, and goes over their keys in the same way, so that each sum has one order and one
// owner; that of keys is taken in a pass of its own (flash_keys.cu). A warp takes 16 keys at a time: S and dP are few registers, and
// Q and dO stay in registers.
//
// Work: 6·E FLOPs for each query and key. Shared memory: two tiles of K and V, one on its way, 256·(2·E+16) bytes.

#include "flash.cuh"
#include "flash_mma.cuh"

const int M = ROWS / 64; // fragments of 16 queries that a warp has

KERNEL __launch_bounds__(THREADS, M * STEPS <= 4 ? 3 : 2) flash_queries(T *dq, const T *dout, const vec<float, 2> *stats, const T *q, const T *keys, const T *values, const int *start, const float *slopes,
	PLAN, float *partial, i64 plan_units, i64 out_stride, i64 q_stride, i64 length64, i64 group, i64 tokens, float scale, float factor, float limit, i64) {
	SHARED(T, shared);
	__shared__ Slot slots[2][TILE];
	const Plan plan = PLANNED;
	const int head = blockIdx.y, length = length64;
#if LAYOUT
	const Graph graph = plan.graphs[head % plan.heads];
	const int unit = graph.units - 1 - (int)blockIdx.x;
	if (unit < 0) return;
	const Queries queries = unit_of(plan.units[graph.unit + unit], 0, length);
#else
	const int first = (int)(gridDim.x - 1 - blockIdx.x) * ROWS;
	const Queries queries = {first, 1, min(ROWS, length - first), 0, 0, 0, length};
#endif
	if (queries.first >= length) return;
	const i64 token = (i64)blockIdx.z * length, kv = head / (int)group * E;
	q += token * q_stride + head * E;
	dq += token * q_stride + head * E;
	dout += token * out_stride + head * E;
	stats += head * tokens + token;
	keys += token * q_stride + kv;
	values += token * q_stride + kv;
	start = row_start(start, length);

	auto query_row = [&](int r) { return position(queries, r); };
	Walk w = walk(queries, plan, start);
	auto load_keys = [&](T *to, const T *matrix) {
#if LAYOUT
		load_rows<TILE>(to, matrix, q_stride, [&](int r) { int at = key_at(plan, w.at, r); return at < length ? at : -1; });
#else
		load_run<TILE>(to, matrix + (i64)(w.at * TILE) * q_stride, q_stride, length - w.at * TILE);
#endif
	};
	auto load_next = [&](int half) {
		if (w.at >= w.end) return;
		load_keys(shared + half * 2 * TILE * PITCH, keys);
		load_keys(shared + (half * 2 + 1) * TILE * PITCH, values);
#if LAYOUT
		const int r = threadIdx.x;
		if (r < TILE) slots[half][r] = slot_of(key_at(plan, w.at, r), plan.limits[plan.of_units[w.at].limits * TILE + r]);
#endif
	};

	load_rows<ROWS>(shared, q, q_stride, query_row);
	load_rows<ROWS>(shared + ROWS * PITCH, dout, out_stride, query_row);
	cp_async_commit();
	cp_async_wait<0>();
	__syncthreads();
	u32 qs[M][STEPS][4], dos[M][STEPS][4];
	float sums[M][2 * STEPS][4], z[M][2], delta[M][2];
	int at[M][2];
#pragma unroll
	for (int m = 0; m < M; m++) {
		const int r0 = (warp() * M + m) * 16;
#pragma unroll
		for (int step = 0; step < STEPS; step++) {
			first_operand(qs[m][step], shared, r0, step);
			first_operand(dos[m][step], shared + ROWS * PITCH, r0, step);
		}
#pragma unroll
		for (int n = 0; n < 2 * STEPS; n++) sums[m][n][0] = sums[m][n][1] = sums[m][n][2] = sums[m][n][3] = 0;
#pragma unroll
		for (int h = 0; h < 2; h++) {
			at[m][h] = position(queries, r0 + h * 8 + lane() / 4);
			vec<float, 2> s = {{infinity(0.0f), 0}};
			if (at[m][h] >= 0) s = stats[at[m][h]];
			z[m][h] = s.v[0];
			delta[m][h] = s.v[1];
		}
	}
	__syncthreads();
	load_next(0);
	cp_async_commit();
	const float slope = SLOPES ? slopes[head] : 0.0f;

	for (int half = 0; w.at < w.end; half ^= 1) {
		const T *const sk = shared + half * 2 * TILE * PITCH, *const sv = sk + TILE * PITCH;
		const bool masked = !whole(w, plan);
		const int first_key = w.at * TILE;
		cp_async_wait<0>();
		__syncthreads(); // the tile has come, and everyone is done with the one before
		w.at++;
		walk_on(w, plan);
		load_next(half ^ 1);
		cp_async_commit();
		int begin[M][2];
#pragma unroll
		for (int m = 0; m < M; m++)
			for (int h = 0; h < 2; h++) begin[m][h] = masked ? begin_of(start, at[m][h]) : 0;
#pragma unroll 2
		for (int key = 0; key < TILE; key += 16) {
			if (!LAYOUT && first_key + key >= queries.first + (warp() + 1) * M * 16) break; // hidden from all of the warp
			float s[M][2][4] = {}, dp[M][2][4] = {};
#pragma unroll
			for (int step = 0; step < STEPS; step++) {
				u32 k[2][2], v[2][2];
				along(k, sk, key, step);
				along(v, sv, key, step);
#pragma unroll
				for (int m = 0; m < M; m++)
#pragma unroll
					for (int n = 0; n < 2; n++) {
						mma(s[m][n], qs[m][step], k[n], T());
						mma(dp[m][n], dos[m][step], v[n], T());
					}
			}
#pragma unroll
			for (int n = 0; n < 2; n++)
#pragma unroll
				for (int j = 0; j < 2; j++) {
					const int r = key + n * 8 + lane() % 4 * 2 + j;
#if LAYOUT
					const Slot slot = slots[half][r];
#else
					const Slot slot = {first_key + r, first_key + r, NOWHERE};
#endif
#pragma unroll
					for (int m = 0; m < M; m++)
#pragma unroll
						for (int h = 0; h < 2; h++) {
							float &x = s[m][n][2 * h + j];
							float d = dp[m][n][2 * h + j] - delta[m][h], slope_of_cap = 1;
							if (CAPS) x = capped(x, limit, slope_of_cap);
							d *= slope_of_cap;
							if (SLOPES) x = exp2_fast(fmaf(-slope, (float)(at[m][h] - slot.key), x * scale) - z[m][h]);
							else x = exp2_fast(fmaf(x, scale, -z[m][h]));
							x = masked && !sees(at[m][h], slot, begin[m][h]) ? 0 : x * d;
						}
				}
			u32 a[M][4];
#pragma unroll
			for (int m = 0; m < M; m++) operand_of(a[m], s[m][0], s[m][1]);
#pragma unroll
			for (int step = 0; step < STEPS; step++) {
				u32 b[2][2];
				across(b, sk, key, step);
#pragma unroll
				for (int m = 0; m < M; m++) {
					mma(sums[m][2 * step], a[m], b[0], T());
					mma(sums[m][2 * step + 1], a[m], b[1], T());
				}
			}
		}
	}
	cp_async_wait<0>();
	__syncthreads();
#if PARTIAL
	partial += tile_of(plan, head, gridDim.y, plan_units, graph.units_before + unit) * TILE * E;
#endif
#pragma unroll
	for (int m = 0; m < M; m++) {
		const int r0 = (warp() * M + m) * 16;
#if PARTIAL
		keep(partial, sums[m], r0, factor, factor);
#else
		stage(shared, sums[m], r0, factor, factor);
		store_rows(dq, q_stride, shared, r0, query_row);
#endif
	}
}
