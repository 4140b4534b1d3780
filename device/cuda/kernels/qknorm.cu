// QKNorm: RMSNorm of every query and key head, for which lanes of a warp take a pack each (heads of 8 to 256 elements, a power of two)
// or all 32 in turn. T stores qkv, S xhat; the rest is A.

// group_sum adds over groups of so many neighbouring lanes, a power of two.
DEVICE A group_sum(A x, int lanes) {
	for (int d = lanes >> 1; d > 0; d >>= 1) x += __shfl_xor_sync(all_lanes, x, d);
	return x;
}

// qk_norm normalises head blockIdx.x·groups + group of the rows' heads, qkv [rows, stride] and xhat [rows, norms·size]. It moves, per
// element, those of qkv in and out and those of xhat out.
KERNEL qk_norm(T *qkv, S *xhat, A *rstd, const A *gainQ, const A *gainK,
	i64 rows, i64 stride, i64 norms, i64 queries, i64 size, i64 lanes, double eps) {
	const u32 group = threadIdx.x / (u32)lanes, head = blockIdx.x * (blockDim.x / (u32)lanes) + group; // 32 bits divide fast
	const i64 row = head / (u32)norms, h = head % (u32)norms;
	const bool live = row < rows; // all lanes take part in sums
	T *const y = qkv + row * stride + h * size;
	const A *const gain = h < queries ? gainQ : gainK;
	const i64 first = threadIdx.x % (u32)lanes * pack, step = lanes * pack;
	A v[pack], g[pack], squares = 0;
	for (i64 c = first; live && c < size; c += step) {
		load_pack(v, y + c, size - c);
		for (int i = 0; i < pack; i++) squares += v[i] * v[i];
	}
	const A r = 1 / sqrt_of(group_sum(squares, lanes) / size + A(eps));
	if (live && first == 0) rstd[head] = r;
	for (i64 c = first; live && c < size; c += step) {
		load_pack(v, y + c, size - c);
		for (int i = 0; i < pack; i++) v[i] = widen(rounded<S>(v[i] * r));
		store_pack(xhat + (i64)head * size + c, v, size - c);
		load_pack(g, gain + c, size - c);
		for (int i = 0; i < pack; i++) v[i] *= g[i];
		store_pack(y + c, v, size - c);
	}
}

// qk_norm_grad takes rows [b·per, (b+1)·per) in block b, its groups of lanes one head after the other, each with sums of dy·xhat of
// its own for queries and keys; their sums go to row b of sums [blocks, 2, size], for add_columns. It moves, per element, those of
// dqkv in and out and those of xhat in.
KERNEL qk_norm_grad(T *dqkv, A *sums, const S *xhat, const A *rstd, const A *gainQ, const A *gainK,
	i64 rows, i64 stride, i64 norms, i64 queries, i64 size, i64 lanes, i64 per) {
	SHARED(A, shared); // [groups, 2, size]
	const u32 groups = blockDim.x / (u32)lanes, group = threadIdx.x / (u32)lanes; // 32 bits divide fast
	const i64 first = threadIdx.x % (u32)lanes * pack, step = lanes * pack;
	for (i64 i = threadIdx.x; i < groups * 2 * size; i += blockDim.x) shared[i] = 0;
	__syncthreads();
	const i64 from = blockIdx.x * per, to = from + per < rows ? from + per : rows;
	A d[pack], x[pack], g[pack];
	for (u32 base = from * norms; base < to * norms; base += groups) {
		const u32 head = base + group;
		const i64 row = head / (u32)norms, h = head % (u32)norms;
		const bool live = row < to; // all lanes take part in sums
		T *const dy = dqkv + row * stride + h * size;
		const A *const gain = h < queries ? gainQ : gainK;
		A *const dgain = shared + (2 * group + (h < queries ? 0 : 1)) * size;
		A dot = 0;
		for (i64 c = first; live && c < size; c += step) {
			load_pack(d, dy + c, size - c);
			load_pack(x, xhat + (i64)head * size + c, size - c);
			load_pack(g, gain + c, size - c);
			for (int i = 0; i < pack; i++) dot += d[i] * g[i] * x[i];
		}
		const A along = group_sum(dot, lanes) / size, r = live ? rstd[head] : 0;
		for (i64 c = first; live && c < size; c += step) {
			load_pack(d, dy + c, size - c);
			load_pack(x, xhat + (i64)head * size + c, size - c);
			load_pack(g, dgain + c, size - c);
			for (int i = 0; i < pack; i++) g[i] += d[i] * x[i];
			store_pack(dgain + c, g, size - c);
			load_pack(g, gain + c, size - c);
			for (int i = 0; i < pack; i++) d[i] = r * (d[i] * g[i] - x[i] * along);
			store_pack(dy + c, d, size - c);
		}
	}
	__syncthreads();
	for (i64 c = threadIdx.x; c < 2 * size; c += blockDim.x) {
		A s = 0;
		for (i64 i = 0; i < groups; i++) s += shared[i * 2 * size + c];
		sums[blockIdx.x * 2 * size + c] = s;
	}
}
