// RMSNorm (Zhang & Sennrich 2019), one row to a block. T stores y and its gradient, S xhat; the rest is A. Rows are read twice,
// the second time from the cache.

// rms_norm moves, per element, 4 bytes of x in and those of xhat and y out.
KERNEL rms_norm(T *y, S *xhat, A *rstd, const A *x, const A *gain, i64 cols, double eps) {
	const i64 at = blockIdx.x * cols;
	A v[pack], g[pack], squares = 0;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(v, x + at + c, cols - c);
		for (int i = 0; i < pack; i++) squares += v[i] * v[i];
	}
	const A r = 1 / sqrt_of(block_sum(squares) / cols + A(eps));
	if (threadIdx.x == 0) rstd[blockIdx.x] = r;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(v, x + at + c, cols - c);
		load_pack(g, gain + c, cols - c);
		for (int i = 0; i < pack; i++) v[i] = widen(rounded<S>(v[i] * r));
		store_pack(xhat + at + c, v, cols - c);
		for (int i = 0; i < pack; i++) v[i] *= g[i];
		store_pack(y + at + c, v, cols - c);
	}
}

// rms_norm_again moves, per element, those of xhat in and of y out.
KERNEL rms_norm_again(T *y, const S *xhat, const A *gain, i64 cols) {
	const i64 at = blockIdx.x * cols;
	A v[pack], g[pack];
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(v, xhat + at + c, cols - c);
		load_pack(g, gain + c, cols - c);
		for (int i = 0; i < pack; i++) v[i] *= g[i];
		store_pack(y + at + c, v, cols - c);
	}
}

// rms_norm_grad takes rows [b·per, (b+1)·per) in block b, one after the other, and writes the sums of dy·xhat over them to row b of
// sums, for add_columns. It moves, per element, those of dy and xhat in and 8 bytes of dx in and out. A thread alone touches its columns
// of the shared sums, [cols] rounded up to packs.
KERNEL rms_norm_grad(A *dx, A *sums, const T *dy, const S *xhat, const A *rstd, const A *gain, i64 rows, i64 cols, i64 per) {
	SHARED(A, dgain);
	A d[pack], h[pack], g[pack], s[pack];
	for (int i = 0; i < pack; i++) s[i] = 0;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) store_pack(dgain + c, s, pack);
	const i64 from = blockIdx.x * per, to = from + per < rows ? from + per : rows;
	for (i64 row = from; row < to; row++) {
		const i64 at = row * cols;
		A dot = 0;
		for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
			load_pack(d, dy + at + c, cols - c);
			load_pack(h, xhat + at + c, cols - c);
			load_pack(g, gain + c, cols - c);
			for (int i = 0; i < pack; i++) dot += d[i] * g[i] * h[i];
		}
		const A along = block_sum(dot) / cols, r = rstd[row];
		for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
			load_pack(d, dy + at + c, cols - c);
			load_pack(h, xhat + at + c, cols - c);
			load_pack(s, dgain + c, pack);
			for (int i = 0; i < pack; i++) s[i] += d[i] * h[i];
			store_pack(dgain + c, s, pack);
			load_pack(g, gain + c, cols - c);
			load_pack(s, dx + at + c, cols - c);
			for (int i = 0; i < pack; i++) s[i] += r * (d[i] * g[i] - h[i] * along);
			store_pack(dx + at + c, s, cols - c);
		}
	}
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(s, dgain + c, pack);
		store_pack(sums + blockIdx.x * cols + c, s, cols - c);
	}
}
