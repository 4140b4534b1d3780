// Attention put together from parts of the keys. T stores what a kernel writes, S what it reads.

// place returns row number i of runs of `rows` rows, of which run r begins at row r·step.
DEVICE i64 place(i64 i, i64 rows, i64 step) { return i / rows * step + i % rows; }

// copy_runs takes one row of cols columns in each block. dst and src point at the first element of their first row; rows of theirs are ld
// elements.
KERNEL copy_runs(T *dst, const S *src, i64 rows, i64 cols, i64 to_step, i64 to_ld, i64 from_step, i64 from_ld, i64 add) {
	dst += place(blockIdx.x, rows, to_step) * to_ld;
	src += place(blockIdx.x, rows, from_step) * from_ld;
	A x[pack], y[pack];
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(x, src + c, cols - c);
		if (add) {
			load_pack(y, dst + c, cols - c);
			for (int i = 0; i < pack; i++) x[i] += y[i];
		}
		store_pack(dst + c, x, cols - c);
	}
}

// merge_attention takes one row and one head, from `head` on, in each block of one warp: out [n, heads·size] and lse [heads, n] take over
// part [m, heads·size] and part_lse [heads, m].
KERNEL merge_attention(T *out, A *lse, const S *part, const A *part_lse, i64 head, i64 heads, i64 size, i64 n, i64 m, i64 rows, i64 to,
	i64 to_step, i64 from, i64 from_step, i64 fresh, A shift) {
	const i64 h = head + blockIdx.y;
	const i64 dst = to + place(blockIdx.x, rows, to_step), src = from + place(blockIdx.x, rows, from_step);
	const A none = -infinity(A(0)), b = part_lse[h * m + src] + shift, a = fresh ? none : lse[h * n + dst];
	if (b == none && !fresh) return;
	const A top = max_of(a, b), p = a == none ? A(0) : exp_of(a - top), q = a == none ? A(1) : exp_of(b - top);
	__syncwarp();
	if (lane() == 0) lse[h * n + dst] = a == none ? b : top + log_of(p + q);
	out += (dst * heads + h) * size;
	part += (src * heads + h) * size;
	A x[pack], y[pack];
	for (i64 c = lane() * pack; c < size; c += 32 * pack) {
		load_pack(x, part + c, size - c);
		if (p != 0) {
			load_pack(y, out + c, size - c);
			for (int i = 0; i < pack; i++) x[i] = (p * y[i] + q * x[i]) / (p + q);
		}
		store_pack(out + c, x, size - c);
	}
}
