// What attention does beside its products: what is known of rows before their gradients, and the results of queries and keys that are in
// several blocks of a plan. There, slots[graph.queries + query] … slots[graph.queries + query + 1] is the range of slots that lists
// the query's places in the graph's units, in order; the same for keys and tiles with graph.keys. A warp has one row, but where it says otherwise.

#define LAYOUT 1
#include "flash.cuh"

const A LOG2E = A(1.4426950408889634), LN2 = A(0.6931471805599453);

// row_of_warp is the warp's position, and the batch's row and the head are the block's.
DEVICE int row_of_warp() { return blockIdx.x * (blockDim.x / 32) + warp(); }

// flash_stats writes stats [H, N]: the log-sum-exp in base 2, +Inf where nothing is seen, so that weights are 0, and delta = Σ dO·O. 8 lanes have
// a head of a token, and neighbours have the next. Bytes: two reads of [N, H·E], 16 at a time where E allows it.
KERNEL flash_stats(vec<A, 2> *stats, const T *dout, const T *out, const A *lse, i64 heads, i64 tokens, i64 E) {
	const int n = 16 / sizeof(T), part = lane() % 8;
	const i64 row = global_thread() / 8;
	A sum = 0;
	if (row < heads * tokens && E % n == 0) {
		for (int c = part * n; c < E; c += 8 * n) {
			const vec<T, n> x = load_vec<T, n>(dout + row * E + c), y = load_vec<T, n>(out + row * E + c);
			for (int i = 0; i < n; i++) sum = fma_of(widen(x.v[i]), widen(y.v[i]), sum);
		}
	} else if (row < heads * tokens) {
		for (int c = part; c < E; c += 8) sum = fma_of(widen(dout[row * E + c]), widen(out[row * E + c]), sum);
	}
	for (int d = 4; d > 0; d >>= 1) sum += __shfl_xor_sync(all_lanes, sum, d);
	if (row >= heads * tokens || part > 0) return;
	const i64 at = row % heads * tokens + row / heads;
	stats[at] = vec<A, 2>{{lse[at] == -infinity(A(0)) ? infinity(A(0)) : lse[at] * LOG2E, sum}};
}

// join_outputs puts the outputs of a query's blocks together by their shares of the denominators.
KERNEL join_outputs(T *out, A *lse, const A *sinks, const A *partial, const A *partial_lse, const Graph *graphs, const int *slots, i64 plan_heads, i64 plan_units, i64 length, i64 from, i64 tokens, i64 E) {
	const int head = blockIdx.y, heads = gridDim.y, at = from + row_of_warp();
	if (at >= length) return;
	const Plan plan = {graphs, 0, 0, 0, 0, 0, 0, (int)plan_heads};
	const Graph g = graphs[head % plan.heads];
	const i64 base = tile_of(plan, head, heads, plan_units, g.units_before) * TILE, n = (i64)blockIdx.z * (length - from) + at - from;
	const int begin = slots[g.queries + at], end = slots[g.queries + at + 1];
	const A sink = sinks ? sinks[head] * LOG2E : -infinity(A(0));
	A top = sink, sum = 0;
	for (int i = begin; i < end; i++) top = max_of(top, partial_lse[base + slots[i]]);
	const bool seen = top > -infinity(A(0));
	if (seen) sum = exp2_of(sink - top);
	for (int i = begin; seen && i < end; i++) sum += exp2_of(partial_lse[base + slots[i]] - top);
	for (int c = lane(); c < E; c += 32) {
		A x = 0;
		for (int i = begin; seen && i < end; i++) x = fma_of(exp2_of(partial_lse[base + slots[i]] - top) / sum, partial[(base + slots[i]) * E + c], x);
		narrow(out[(n * heads + head) * E + c], x);
	}
	if (lse && lane() == 0) lse[head * tokens + n] = seen ? (top + log2_of(sum)) * LN2 : -infinity(A(0));
}

// sinks_grad subtracts from dsinks[head], of the block, the sum over tokens of what stats say: the sink's share of the softmax times delta.
KERNEL sinks_grad(A *dsinks, const A *sinks, const vec<A, 2> *stats, i64 tokens) {
	const int head = blockIdx.x;
	double sum = 0;
	for (i64 i = threadIdx.x; i < tokens; i += blockDim.x) {
		const vec<A, 2> stat = stats[head * tokens + i];
		sum += exp2_of(sinks[head] * LOG2E - stat.v[0]) * stat.v[1];
	}
	sum = block_sum(sum);
	if (threadIdx.x == 0) dsinks[head] -= (A)sum;
}

// join_queries adds up the gradients of a query.
KERNEL join_queries(T *dq, const A *partial, const Graph *graphs, const int *slots, i64 plan_heads, i64 plan_units, i64 stride, i64 length, i64 E) {
	const int head = blockIdx.y, at = row_of_warp();
	if (at >= length) return;
	const Plan plan = {graphs, 0, 0, 0, 0, 0, 0, (int)plan_heads};
	const Graph g = graphs[head % plan.heads];
	const i64 base = tile_of(plan, head, gridDim.y, plan_units, g.units_before) * TILE;
	for (int c = lane(); c < E; c += 32) {
		A x = 0;
		for (int i = slots[g.queries + at]; i < slots[g.queries + at + 1]; i++) x += partial[(base + slots[i]) * E + c];
		narrow(dq[(blockIdx.z * length + at) * stride + head * E + c], x);
	}
}

// join_keys adds up the gradients of a key and its value, for one query head after the other of those that share them.
KERNEL join_keys(T *dkeys, T *dvalues, const A *partial, const Graph *graphs, const int *slots, i64 plan_heads, i64 plan_tiles, i64 stride, i64 length, i64 group, i64 E) {
	const int kv = blockIdx.y, heads = gridDim.y * group, at = row_of_warp();
	if (at >= length) return;
	const Plan plan = {graphs, 0, 0, 0, 0, 0, 0, (int)plan_heads};
	for (int c = lane(); c < E; c += 32) {
		A dk = 0, dv = 0;
		for (int head = kv * group; head < (kv + 1) * group; head++) {
			const Graph g = graphs[head % plan.heads];
			const i64 base = tile_of(plan, head, heads, plan_tiles, g.tiles_before) * 2 * TILE;
			for (int i = slots[g.keys + at]; i < slots[g.keys + at + 1]; i++) {
				const i64 slot = base + slots[i] / TILE * 2 * TILE + slots[i] % TILE;
				dk += partial[slot * E + c];
				dv += partial[(slot + TILE) * E + c];
			}
		}
		narrow(dkeys[(blockIdx.z * length + at) * stride + kv * E + c], dk);
		narrow(dvalues[(blockIdx.z * length + at) * stride + kv * E + c], dv);
	}
}

// cache_append copies keys and values of positions from first on, one block for each, to their rows of the ring.
KERNEL cache_append(T *ring, const T *keys, i64 rows, i64 width, i64 stride, i64 first) {
	const i64 n = blockIdx.x;
	for (int c = threadIdx.x; c < width; c += blockDim.x) ring[(first + n) % rows * width + c] = keys[n * stride + c];
}
