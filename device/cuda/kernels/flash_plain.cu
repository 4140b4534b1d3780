// Attention and its gradients without tensor cores: for FP32 and FP64, for heads of more than 128 elements or of no multiple of 8. The
// formulas are those of flash_forward.cu, flash_queries.cu and flash_keys.cu.
//
// A block has WARPS warps of 4 queries, or keys, each, and goes over 32 of the others at a time, one for each lane: dot products with
// them, whose rows lie in shared memory an odd number of words apart, so that lanes read 32 different banks (16 pairs of banks,
// twice, in FP64); then sums over them, with one lane for each column. A row that is read serves 4 products.
//
// Work: 4·E, 6·E and 8·E FLOPs for each query and key, one read of shared memory for 4 fused multiply-adds.
// Shared memory: rows of the block and of the others, (4·WARPS + 64)·E numbers forward, (8·WARPS + 64)·E backward.

#include "flash.cuh"

const int QUERIES = 32;

#include "flash_visit.cuh"

const int MINE = 4;                  // rows of a warp
const int ROWS = MINE * WARPS;       // rows of a block
const int PARTS = TILE / ROWS;       // blocks of a unit or tile

// A lane has COLUMNS columns of E: 32·COLUMNS is E or a little more. Rows lie apart(E) numbers from each other.
DEVICE int apart(int E) { return E | 1; }

// fetch copies so many rows [rows, E] to shared memory; row r comes from row at(r) of matrix from, and is zero if that is below 0.
template <class At> DEVICE void fetch(A *to, const T *from, i64 stride, int rows, int E, At at) {
	for (int i = threadIdx.x; i < rows * E; i += 32 * WARPS) {
		const int r = i / E, c = i % E, row = at(r);
		to[r * apart(E) + c] = row < 0 ? A(0) : widen(from[row * stride + c]);
	}
}

// dots sets x[i] to the product of row i of mine and the lane's row of others.
DEVICE void dots(A (&x)[MINE], const A *mine, const A *others, int E) {
	for (int i = 0; i < MINE; i++) x[i] = 0;
	for (int c = 0; c < E; c++) {
		const A y = others[lane() * apart(E) + c];
#pragma unroll
		for (int i = 0; i < MINE; i++) x[i] = fma_of(mine[i * apart(E) + c], y, x[i]);
	}
}

// add adds Σ x[i]·others over the lanes' rows of others to sums[i].
DEVICE void add(A (&sums)[MINE][COLUMNS], const A (&x)[MINE], const A *others, int E) {
	for (int j = 0; j < 32; j++) {
		A w[MINE];
#pragma unroll
		for (int i = 0; i < MINE; i++) w[i] = __shfl_sync(all_lanes, x[i], j);
#pragma unroll
		for (int n = 0; n < COLUMNS; n++) {
			const int c = n * 32 + lane();
			const A y = c < E ? others[j * apart(E) + c] : A(0);
#pragma unroll
			for (int i = 0; i < MINE; i++) sums[i][n] = fma_of(w[i], y, sums[i][n]);
		}
	}
}

// put stores a row of sums times a factor.
template <class S> DEVICE void put(S *to, const A (&sums)[COLUMNS], A factor, int E) {
#pragma unroll
	for (int n = 0; n < COLUMNS; n++)
		if (n * 32 + lane() < E) narrow(to[n * 32 + lane()], sums[n] * factor);
}

// block_queries returns the queries of a block, and in unit what unit of its graph they are.
DEVICE Queries block_queries(const Plan &p, const Graph &graph, int from, int until, int &unit) {
#if LAYOUT
	unit = graph.units - 1 - (int)blockIdx.x / PARTS;
	const int part = blockIdx.x % PARTS;
	if (unit < 0) return Queries{0, 1, 0, 0, 0, from, until};
	const Unit &u = p.units[graph.unit + unit];
	return Queries{u.first + part * ROWS * u.step, u.step, min(ROWS, u.count - part * ROWS), u.begin, u.end, from, until};
#else
	const int first = from + (int)(gridDim.x - 1 - blockIdx.x) * ROWS;
	return Queries{first, 1, min(ROWS, until - first), 0, 0, from, until};
#endif
}

// lane_slot returns the lane's key of one half of a walk's tile.
DEVICE Slot lane_slot(const Plan &p, const Walk &w, int half) {
	const int r = half * 32 + lane(), key = key_at(p, w.at, r);
#if LAYOUT
	return slot_of(key, p.limits[p.of_units[w.at].limits * TILE + r]);
#else
	return Slot{key, key, NOWHERE};
#endif
}

KERNEL plain_forward(T *out, A *lse, const T *q, const T *keys, const T *values, const int *start, const A *slopes, const A *sinks, PLAN,
	A *partial, A *partial_lse, i64 plan_units, i64 out_stride, i64 q_stride, i64 kv_stride, i64 length64, i64 from64, i64 ring, i64 group, i64 tokens, A scale, A limit, i64 E64, i64 fp8) {
	const int E = E64;
	SHARED(A, sq);
	A *const sk = sq + ROWS * apart(E), *const sv = sk + 32 * apart(E);
	const Plan plan = PLANNED;
	const int head = blockIdx.y, length = length64, from = from64;
	const Graph graph = LAYOUT ? plan.graphs[head % plan.heads] : Graph{};
	int unit = 0;
	const Queries queries = block_queries(plan, graph, from, length, unit);
	if (queries.count <= 0 || queries.first >= length || last_of(queries) < from) return;
	const i64 token = blockIdx.z * (i64)(length - from), kv = head / (int)group * E;
	q += token * q_stride + head * E;
	keys += (i64)blockIdx.z * length * kv_stride + kv;
	values += (i64)blockIdx.z * length * kv_stride + kv;
	start = row_start(start, length);

	fetch(sq, q, q_stride, ROWS, E, [&](int r) { int at = position(queries, r); return at < 0 ? -1 : at - from; });
	A o[MINE][COLUMNS] = {}, top[MINE], sum[MINE];
	int at[MINE], begin[MINE];
	for (int i = 0; i < MINE; i++) {
		top[i] = A(-1e30);
		sum[i] = 0;
		at[i] = position(queries, warp() * MINE + i);
		begin[i] = begin_of(start, at[i]);
	}
	const A slope = slopes ? slopes[head] : A(0);

	Walk w = walk(queries, plan, start);
	while (w.at < w.end) {
		for (int half = 0; half < 2; half++) {
			auto key_row = [&](int r) { int key = key_at(plan, w.at, half * 32 + r); return key >= length ? -1 : ring ? key % (int)ring : key; };
			__syncthreads();
			fetch(sk, keys, kv_stride, 32, E, key_row);
			fetch(sv, values, kv_stride, 32, E, key_row);
			__syncthreads();
			const Slot slot = lane_slot(plan, w, half);
			A s[MINE];
			dots(s, sq + warp() * MINE * apart(E), sk, E);
			for (int i = 0; i < MINE; i++) {
				A x = s[i], slope_of_cap;
				if (limit > 0) x = capped(x, limit, slope_of_cap);
				x *= scale;
				x = fma_of(-slope, A(at[i] - slot.key), x);
				if (!sees(at[i], slot, begin[i])) x = -infinity(A(0));
				const A most = max_of(top[i], warp_max(x)), less = exp2_of(top[i] - most);
				s[i] = exp2_of(x - most);
				sum[i] = fma_of(sum[i], less, warp_sum(s[i]));
				top[i] = most;
				if (fp8) s[i] = e4m3(s[i]);
				for (int n = 0; n < COLUMNS; n++) o[i][n] *= less;
			}
			add(o, s, sv, E);
		}
		w.at++;
		walk_on(w, plan);
	}
	const i64 slot = LAYOUT ? tile_of(plan, head, gridDim.y, plan_units, graph.units_before + unit) * TILE + (int)blockIdx.x % PARTS * ROWS : 0;
	for (int i = 0; i < MINE; i++) {
		A factor = sum[i] == 0 ? A(0) : 1 / sum[i], z = sum[i] == 0 ? -infinity(A(0)) : top[i] + log2_of(sum[i]);
		if (sinks && !partial) z = sunk(factor, z, sinks[head]);
		if (partial) {
			put(partial + (slot + warp() * MINE + i) * E, o[i], factor, E);
			if (lane() == 0) partial_lse[slot + warp() * MINE + i] = z;
		} else if (at[i] >= 0) {
			put(out + (token + at[i] - from) * out_stride + head * E, o[i], factor, E);
			if (lse && lane() == 0) lse[head * tokens + token + at[i] - from] = z * A(0.6931471805599453);
		}
	}
}

// gradient turns x, a product of query and key, and y, one of gradient and value, into the weight and the gradient of the scaled score.
DEVICE void gradient(A &x, A &y, A limit, A scale, A slope, int query, const Slot &slot, int begin, const vec<A, 2> &stat) {
	A slope_of_cap = 1;
	if (limit > 0) x = capped(x, limit, slope_of_cap);
	x *= scale;
	x = fma_of(-slope, A(query - slot.key), x);
	x = sees(query, slot, begin) ? exp2_of(x - stat.v[0]) : A(0);
	y = x * (y - stat.v[1]) * slope_of_cap;
}

KERNEL plain_queries(T *dq, const T *dout, const vec<A, 2> *stats, const T *q, const T *keys, const T *values, const int *start, const A *slopes, PLAN,
	A *partial, i64 plan_units, i64 out_stride, i64 q_stride, i64 length64, i64 group, i64 tokens, A scale, A factor, A limit, i64 E64) {
	const int E = E64;
	SHARED(A, sq);
	A *const sdo = sq + ROWS * apart(E), *const sk = sdo + ROWS * apart(E), *const sv = sk + 32 * apart(E);
	const Plan plan = PLANNED;
	const int head = blockIdx.y, length = length64;
	const Graph graph = LAYOUT ? plan.graphs[head % plan.heads] : Graph{};
	int unit = 0;
	const Queries queries = block_queries(plan, graph, 0, length, unit);
	if (queries.count <= 0 || queries.first >= length) return;
	const i64 token = (i64)blockIdx.z * length, kv = head / (int)group * E;
	keys += token * q_stride + kv;
	values += token * q_stride + kv;
	start = row_start(start, length);

	auto query_row = [&](int r) { return position(queries, r); };
	fetch(sq, q + token * q_stride + head * E, q_stride, ROWS, E, query_row);
	fetch(sdo, dout + token * out_stride + head * E, out_stride, ROWS, E, query_row);
	A sums[MINE][COLUMNS] = {};
	vec<A, 2> stat[MINE];
	int at[MINE], begin[MINE];
	for (int i = 0; i < MINE; i++) {
		at[i] = position(queries, warp() * MINE + i);
		begin[i] = begin_of(start, at[i]);
		stat[i] = vec<A, 2>{{infinity(A(0)), 0}};
		if (at[i] >= 0) stat[i] = stats[head * tokens + token + at[i]];
	}
	const A slope = slopes ? slopes[head] : A(0);
	Walk w = walk(queries, plan, start);
	while (w.at < w.end) {
		for (int half = 0; half < 2; half++) {
			auto key_row = [&](int r) { int key = key_at(plan, w.at, half * 32 + r); return key < length ? key : -1; };
			__syncthreads();
			fetch(sk, keys, q_stride, 32, E, key_row);
			fetch(sv, values, q_stride, 32, E, key_row);
			__syncthreads();
			const Slot slot = lane_slot(plan, w, half);
			A s[MINE], ds[MINE];
			dots(s, sq + warp() * MINE * apart(E), sk, E);
			dots(ds, sdo + warp() * MINE * apart(E), sv, E);
			for (int i = 0; i < MINE; i++) gradient(s[i], ds[i], limit, scale, slope, at[i], slot, begin[i], stat[i]);
			add(sums, ds, sk, E);
		}
		w.at++;
		walk_on(w, plan);
	}
	const i64 slot = LAYOUT ? tile_of(plan, head, gridDim.y, plan_units, graph.units_before + unit) * TILE + (int)blockIdx.x % PARTS * ROWS : 0;
	for (int i = 0; i < MINE; i++) {
		if (partial) put(partial + (slot + warp() * MINE + i) * E, sums[i], factor, E);
		else if (at[i] >= 0) put(dq + (token + at[i]) * q_stride + head * E, sums[i], factor, E);
	}
}

KERNEL plain_keys(T *dkeys, T *dvalues, const T *dout, const vec<A, 2> *stats, const T *q, const T *keys, const T *values, const int *start, const A *slopes, PLAN,
	A *partial, i64 plan_tiles, i64 out_stride, i64 q_stride, i64 length64, i64 group, i64 heads_of_block, i64 tokens, A scale, A factor, A limit, i64 E64) {
	const int E = E64;
	SHARED(A, sk);
	A *const sv = sk + ROWS * apart(E), *const sq = sv + ROWS * apart(E), *const sdo = sq + 32 * apart(E);
	const Plan plan = PLANNED;
	const int length = length64, first_head = blockIdx.y * heads_of_block, r0 = (int)blockIdx.x % PARTS * ROWS;
	const Graph graph = LAYOUT ? plan.graphs[first_head % plan.heads] : Graph{};
	int tile = blockIdx.x / PARTS, low = tile * TILE, high = low + TILE - 1;
	List list = {};
#if LAYOUT
	if (tile >= graph.tiles) return;
	tile += graph.tile;
	list = plan.lists[tile];
	if (list.begin < list.end) { low = plan.of_tiles[list.begin].low; high = plan.of_tiles[list.begin].high; }
	auto key_of = [&](int r) { return plan.tiles[tile * TILE + r]; };
#else
	auto key_of = [&](int r) { return tile * TILE + r; };
#endif
	const i64 token = (i64)blockIdx.z * length, kv = first_head / (int)group * E;
	q += token * q_stride;
	dout += token * out_stride;
	stats += token;
	start = row_start(start, length);
	auto key_row = [&](int r) { int at = key_of(r0 + r); return at < length ? at : -1; };
	fetch(sk, keys + token * q_stride + kv, q_stride, ROWS, E, key_row);
	fetch(sv, values + token * q_stride + kv, q_stride, ROWS, E, key_row);
	A dk[MINE][COLUMNS] = {}, dv[MINE][COLUMNS] = {};

	Visit v = {first_head - 1, first_head + (int)heads_of_block - 1, 0, 0, 0};
	settle(v, plan, list, low, high, length, start, graph.tile);
	while (v.at < v.end) {
		const Queries queries = visited(v, plan, length);
		auto query_row = [&](int r) { return position(queries, r); };
		__syncthreads();
		fetch(sq, q + v.head * E, q_stride, QUERIES, E, query_row);
		fetch(sdo, dout + v.head * E, out_stride, QUERIES, E, query_row);
		__syncthreads();
		const int at = position(queries, lane()), begin = begin_of(start, at);
		const A slope = slopes ? slopes[v.head] : A(0);
		vec<A, 2> stat = {{infinity(A(0)), 0}};
		if (at >= 0) stat = stats[v.head * tokens + at];
		A p[MINE], ds[MINE];
		dots(p, sk + warp() * MINE * apart(E), sq, E);
		dots(ds, sv + warp() * MINE * apart(E), sdo, E);
		for (int i = 0; i < MINE; i++) {
			const int r = r0 + warp() * MINE + i, key = key_of(r);
#if LAYOUT
			const Slot slot = slot_of(key, plan.limits[plan.of_tiles[v.at].limits * TILE + r]);
#else
			const Slot slot = {key, key, NOWHERE};
#endif
			gradient(p[i], ds[i], limit, scale, slope, at, slot, begin, stat);
		}
		add(dv, p, sdo, E);
		add(dk, ds, sq, E);
		visit_on(v);
		settle(v, plan, list, low, high, length, start, graph.tile);
	}
	const i64 slot = LAYOUT ? tile_of(plan, first_head, gridDim.y, plan_tiles, graph.tiles_before + tile - graph.tile) * 2 * TILE : 0;
	for (int i = 0; i < MINE; i++) {
		const int r = r0 + warp() * MINE + i, key = key_of(r);
		if (partial) {
			put(partial + (slot + r) * E, dk[i], factor, E);
			put(partial + (slot + TILE + r) * E, dv[i], 1, E);
		} else if (key < length) {
			put(dkeys + (token + key) * q_stride + kv, dk[i], factor, E);
			put(dvalues + (token + key) * q_stride + kv, dv[i], 1, E);
		}
	}
}
