// The gradients of attention's keys and values on tensor cores, for heads of up to 128 elements, a multiple of 8:
//
//	dV = Pᵀ·dO, dK = scale · dSᵀ·Q, with P and dS as in flash_queries.cu
//
// A block of 4 warps has 64 keys and goes over the queries that see some of them, in order, for one query head after the other of those
// that share the keys: each sum has one order and one owner, and there are no atomics. Products are those of the transposes, Sᵀ = K·Qᵀ and
// dPᵀ = V·dOᵀ: a warp has 16 keys, and Pᵀ and dSᵀ go from registers into the next products.
//
// Work: 8·E FLOPs for each query and key. Shared memory: two tiles of QUERIES rows of Q and dO, one on its way, 4·QUERIES·(2·E+16) bytes.

#include "flash.cuh"
#include "flash_mma.cuh"

const int QUERIES = E <= 64 ? 64 : 32;

#include "flash_visit.cuh"

KERNEL __launch_bounds__(THREADS, E <= 64 ? 3 : 2) flash_keys(T *dkeys, T *dvalues, const T *dout, const vec<float, 2> *stats, const T *q, const T *keys, const T *values, const int *start, const float *slopes,
	PLAN, float *partial, i64 plan_tiles, i64 out_stride, i64 q_stride, i64 length64, i64 group, i64 heads_of_block, i64 tokens, float scale, float factor, float limit, i64) {
	SHARED(T, shared);
	__shared__ __align__(16) vec<float, 2> stat[2][QUERIES];
	const Plan plan = PLANNED;
	const int length = length64, first_head = blockIdx.y * heads_of_block;
	List list = {};
#if LAYOUT
	const Graph graph = plan.graphs[first_head % plan.heads];
	if ((int)blockIdx.x >= graph.tiles) return;
	const int tile = graph.tile + blockIdx.x;
	list = plan.lists[tile];
	auto key_of = [&](int r) { return plan.tiles[tile * TILE + r]; };
	int low = 0, high = NOWHERE;
	if (list.begin < list.end) { low = plan.of_tiles[list.begin].low; high = plan.of_tiles[list.begin].high; }
	const int graph_tile = graph.tile;
#else
	auto key_of = [&](int r) { return (int)blockIdx.x * TILE + r; };
	const int low = blockIdx.x * TILE, high = low + TILE - 1, graph_tile = 0;
#endif
	const i64 token = (i64)blockIdx.z * length, kv = first_head / (int)group * E;
	q += token * q_stride;
	dout += token * out_stride;
	stats += token;
	keys += token * q_stride + kv;
	values += token * q_stride + kv;
	dkeys += token * q_stride + kv;
	dvalues += token * q_stride + kv;
	start = row_start(start, length);
	auto key_row = [&](int r) { int at = key_of(r); return at < length ? at : -1; };

	load_rows<TILE>(shared, keys, q_stride, key_row);
	load_rows<TILE>(shared + TILE * PITCH, values, q_stride, key_row);
	cp_async_commit();
	cp_async_wait<0>();
	__syncthreads();
	const int r0 = warp() * 16;
	u32 ks[STEPS][4], vs[STEPS][4];
	float dk[2 * STEPS][4] = {}, dv[2 * STEPS][4] = {};
#pragma unroll
	for (int step = 0; step < STEPS; step++) {
		first_operand(ks[step], shared, r0, step);
		first_operand(vs[step], shared + TILE * PITCH, r0, step);
	}
	__syncthreads();

	Visit v = {first_head - 1, first_head + (int)heads_of_block - 1, 0, 0, 0};
	auto load_next = [&](int half) {
		if (v.at >= v.end) return;
		T *const sq = shared + half * 2 * QUERIES * PITCH, *const sdo = sq + QUERIES * PITCH;
		const Queries queries = visited(v, plan, length);
#if LAYOUT
		load_rows<QUERIES>(sq, q + v.head * E, q_stride, [&](int r) { return position(queries, r); });
		load_rows<QUERIES>(sdo, dout + v.head * E, out_stride, [&](int r) { return position(queries, r); });
#else
		load_run<QUERIES>(sq, q + v.head * E + (i64)queries.first * q_stride, q_stride, length - queries.first);
		load_run<QUERIES>(sdo, dout + v.head * E + (i64)queries.first * out_stride, out_stride, length - queries.first);
#endif
		const int r = threadIdx.x;
		if (r < QUERIES) {
			const int at = position(queries, r);
			cp_async8(address_of(&stat[half][r]), stats + v.head * tokens + (at < 0 ? 0 : at), at >= 0);
		}
	};
	settle(v, plan, list, low, high, length, start, graph_tile);
	load_next(0);
	cp_async_commit();

	for (int half = 0; v.at < v.end; half ^= 1) {
		const T *const sq = shared + half * 2 * QUERIES * PITCH, *const sdo = sq + QUERIES * PITCH;
		const Queries queries = visited(v, plan, length);
		const float slope = SLOPES ? slopes[v.head] : 0.0f;
		const int last = last_of(queries);
		Slot slots[2];
#if LAYOUT
		const Meeting meeting = plan.of_tiles[v.at];
		const bool masked = !meeting.whole || start && start[last] > low;
#pragma unroll
		for (int h = 0; h < 2; h++) {
			const int r = r0 + h * 8 + lane() / 4;
			slots[h] = slot_of(key_of(r), plan.limits[meeting.limits * TILE + r]);
		}
#else
		const bool masked = queries.first < high || start && start[last] > low;
#pragma unroll
		for (int h = 0; h < 2; h++) {
			const int key = key_of(r0 + h * 8 + lane() / 4);
			slots[h] = Slot{key, key, NOWHERE};
		}
#endif
		cp_async_wait<0>();
		__syncthreads(); // the queries have come, and everyone is done with those before
		visit_on(v);
		settle(v, plan, list, low, high, length, start, graph_tile);
		load_next(half ^ 1);
		cp_async_commit();
#pragma unroll 1 // more costs registers, and blocks
		for (int query = 0; query < QUERIES; query += 16) {
			if (!LAYOUT && queries.first + query + 15 < low + r0) continue; // they see none of the warp's keys
			float p[2][4] = {}, ds[2][4] = {};
#pragma unroll
			for (int step = 0; step < STEPS; step++) {
				u32 b[2][2], d[2][2];
				along(b, sq, query, step);
				along(d, sdo, query, step);
#pragma unroll
				for (int n = 0; n < 2; n++) {
					mma(p[n], ks[step], b[n], T());
					mma(ds[n], vs[step], d[n], T());
				}
			}
#pragma unroll
			for (int n = 0; n < 2; n++) {
				const int c = query + n * 8 + lane() % 4 * 2;
				const vec<float, 4> st = load_vec<float, 4>(&stat[half][c].v[0]);
#pragma unroll
				for (int j = 0; j < 2; j++) {
					const int at = queries.first + (c + j) * queries.step;
					const int begin = masked && start && at < length ? start[at] : 0;
#pragma unroll
					for (int h = 0; h < 2; h++) {
						float &x = p[n][2 * h + j], &y = ds[n][2 * h + j];
						float slope_of_cap = 1;
						if (CAPS) x = capped(x, limit, slope_of_cap);
						if (SLOPES) x = exp2_fast(fmaf(-slope, (float)(at - slots[h].key), x * scale) - st.v[2 * j]);
						else x = exp2_fast(fmaf(x, scale, -st.v[2 * j]));
						if (masked && !sees(at, slots[h], begin)) x = 0;
						y = x * (y - st.v[2 * j + 1]) * slope_of_cap;
					}
				}
			}
			u32 a[4];
			operand_of(a, p[0], p[1]);
			add_across(dv, a, sdo, query);
			operand_of(a, ds[0], ds[1]);
			add_across(dk, a, sq, query);
		}
	}
	cp_async_wait<0>();
	__syncthreads();
#if PARTIAL
	partial += tile_of(plan, first_head, gridDim.y, plan_tiles, graph.tiles_before + (int)blockIdx.x) * 2 * TILE * E;
	keep(partial, dk, r0, factor, factor);
	keep(partial + TILE * E, dv, r0, 1, 1);
#else
	stage(shared, dk, r0, factor, factor);
	stage(shared + TILE * PITCH, dv, r0, 1, 1);
	store_rows(dkeys, q_stride, shared, r0, key_row);
	store_rows(dvalues, q_stride, shared + TILE * PITCH, r0, key_row);
#endif
}
