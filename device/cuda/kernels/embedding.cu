// Rows of tables by token: reading them, and adding to them. Where several tokens have one id their rows are added in token order, so
// tokens are sorted by id first: keys are id·2³² + token, no two alike, which makes any way to sort them the same.

const i64 elsewhere = -101; // an id of another part of the table

// embedding copies row ids[b] of table [rows, cols] to row b of x in block b; an id that is elsewhere gives zeros, another that is no row
// NaN. T stores the table. It moves, per element, that of table in and 4 bytes out.
KERNEL embedding(A *x, const T *table, const int *ids, i64 rows, i64 cols) {
	const i64 id = ids[blockIdx.x];
	const bool known = id >= 0 && id < rows;
	const A other = id == elsewhere ? A(0) : infinity(A(0)) * 0;
	A v[pack];
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(v, table + (known ? id * cols + c : 0), known ? cols - c : 0, other);
		store_pack(x + blockIdx.x * cols + c, v, cols - c);
	}
}

// make_keys writes the keys of n tokens, and after them the largest number up to a power of two.
KERNEL make_keys(u64 *keys, const int *ids, i64 n) {
	const i64 i = global_thread();
	keys[i] = i < n ? (u64)(u32)ids[i] << 32 | (u64)i : ~0ull;
}

// exchange puts keys i and i + d in the order of the bitonic network's stage: rising where bit `stage` of i is 0.
DEVICE void exchange(u64 &a, u64 &b, bool rising) {
	const u64 x = a, y = b;
	const bool swap = (x > y) == rising;
	a = swap ? y : x;
	b = swap ? x : y;
}

// sort_block does, on a stretch of 2·blockDim keys in shared memory, the steps of stages first … last (powers of two) that stay within it.
KERNEL sort_block(u64 *keys, i64 first, i64 last) {
	SHARED(u64, k);
	const u32 t = threadIdx.x, n = 2 * blockDim.x;
	u64 *const mine = keys + (i64)blockIdx.x * n;
	k[t] = mine[t];
	k[t + blockDim.x] = mine[t + blockDim.x];
	for (i64 stage = first; stage <= last; stage *= 2)
		for (u32 d = stage < n ? stage / 2 : n / 2; d > 0; d /= 2) {
			__syncthreads();
			const u32 i = 2 * t - (t & (d - 1));
			exchange(k[i], k[i + d], (((i64)blockIdx.x * n + i) & stage) == 0);
		}
	__syncthreads();
	mine[t] = k[t];
	mine[t + blockDim.x] = k[t + blockDim.x];
}

// sort_step does one step of a stage, on keys d apart.
KERNEL sort_step(u64 *keys, i64 stage, i64 d) {
	const i64 t = global_thread(), i = 2 * t - (t & (d - 1));
	exchange(keys[i], keys[i + d], (i & stage) == 0);
}

const int window = 64; // keys that one block adds

// id_of returns the id of a key.
DEVICE i64 id_of(const u64 *keys, i64 i) { return (i64)(keys[i] >> 32); }

// add_sum adds factor·sum to a pack of a row of the table.
DEVICE void add_sum(A *to, const A (&sum)[pack], A factor, i64 n) {
	A v[pack];
	load_pack(v, to, n);
	for (int i = 0; i < pack; i++) v[i] += factor * sum[i];
	store_pack(to, v, n);
}

// add_by_id adds factor[0]·rows of x, cols of every stride, to the rows of table [rows, cols] that keys of n tokens name; factor
// null is 1. T stores x. Block b adds window b of the sorted keys. Ids that lie within it are done; of one that began before it the sum
// goes to row 2·b of parts, of one that only goes on after it to row 2·b + 1. Ids that are no row are left out. It moves, per element,
// that of x in and, per row of table in use, 8 bytes in and out.
KERNEL add_by_id(A *table, A *parts, const T *x, const A *factor, const u64 *keys, i64 n, i64 cols, i64 stride, i64 rows) {
	const i64 from = (i64)blockIdx.x * window, to = from + window < n ? from + window : n;
	const bool before = from > 0 && id_of(keys, from - 1) == id_of(keys, from);
	const bool after = to < n && id_of(keys, to - 1) == id_of(keys, to);
	const A f = factor ? *factor : A(1);
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		A v[pack], sum[pack];
		for (int i = 0; i < pack; i++) sum[i] = 0;
		bool began = before; // the id at hand did before this window
		for (i64 i = from; i < to; i++) {
			const i64 id = id_of(keys, i);
			load_pack(v, x + (i64)(u32)keys[i] * stride + c, cols - c);
			for (int k = 0; k < pack; k++) sum[k] += v[k];
			if (i + 1 < to && id_of(keys, i + 1) == id) continue;
			if (began)
				store_pack(parts + 2 * blockIdx.x * cols + c, sum, cols - c);
			else if (i + 1 == to && after)
				store_pack(parts + (2 * blockIdx.x + 1) * cols + c, sum, cols - c);
			else if (id < rows)
				add_sum(table + id * cols + c, sum, f, cols - c);
			began = false;
			for (int k = 0; k < pack; k++) sum[k] = 0;
		}
	}
}

// join_windows adds, in block b, the parts of the id that began in window b and goes on after it, in their order.
KERNEL join_windows(A *table, const A *parts, const A *factor, const u64 *keys, i64 n, i64 cols, i64 rows) {
	const i64 from = (i64)blockIdx.x * window, to = from + window;
	if (to >= n) return;
	const i64 id = id_of(keys, to);
	if (id_of(keys, to - 1) != id || id >= rows || from > 0 && id_of(keys, from - 1) == id) return;
	const A f = factor ? *factor : A(1);
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		A v[pack], sum[pack];
		load_pack(sum, parts + (2 * blockIdx.x + 1) * cols + c, cols - c);
		for (i64 w = blockIdx.x + 1; w * window < n && id_of(keys, w * window) == id; w++) {
			load_pack(v, parts + 2 * w * cols + c, cols - c);
			for (int i = 0; i < pack; i++) sum[i] += v[i];
		}
		add_sum(table + id * cols + c, sum, f, cols - c);
	}
}
