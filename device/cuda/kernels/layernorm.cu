// LayerNorm (Ba et al. 2016, arXiv 1607.06450), one row to a block. T stores y and its gradient, S xhat; the rest is A. Rows are
// read again from the cache.

// affine is here for both kernels to round alike.
DEVICE void affine(A (&y)[pack], const A *gain, const A *bias, i64 n) {
	A g[pack], b[pack];
	load_pack(g, gain, n);
	load_pack(b, bias, n);
	for (int i = 0; i < pack; i++) y[i] = y[i] * g[i] + b[i];
}

// layer_norm takes the squares of distances from the mean as it was rounded, and from their sum what the rounding made of it, so that
// rows far from 0 keep their variance. It moves, per element, 4 bytes of x in and those of xhat and y out.
KERNEL layer_norm(T *y, S *xhat, A *rstd, const A *x, const A *gain, const A *bias, i64 cols, double eps) {
	const i64 at = blockIdx.x * cols;
	A v[pack], sum = 0;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(v, x + at + c, cols - c);
		for (int i = 0; i < pack; i++) sum += v[i];
	}
	const A mean = block_sum(sum) / cols;
	A off = 0, squares = 0;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(v, x + at + c, cols - c, mean);
		for (int i = 0; i < pack; i++) {
			off += v[i] - mean;
			squares += (v[i] - mean) * (v[i] - mean);
		}
	}
	off = block_sum(off) / cols;
	const A variance = block_sum(squares) / cols - off * off;
	const A r = 1 / sqrt_of((variance < 0 ? 0 : variance) + A(eps));
	if (threadIdx.x == 0) rstd[blockIdx.x] = r;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(v, x + at + c, cols - c);
		for (int i = 0; i < pack; i++) v[i] = widen(rounded<S>((v[i] - mean - off) * r));
		store_pack(xhat + at + c, v, cols - c);
		affine(v, gain + c, bias + c, cols - c);
		store_pack(y + at + c, v, cols - c);
	}
}

// layer_norm_again moves, per element, those of xhat in and of y out.
KERNEL layer_norm_again(T *y, const S *xhat, const A *gain, const A *bias, i64 cols) {
	const i64 at = blockIdx.x * cols;
	A v[pack];
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(v, xhat + at + c, cols - c);
		affine(v, gain + c, bias + c, cols - c);
		store_pack(y + at + c, v, cols - c);
	}
}

// layer_norm_grad is as rms_norm_grad. Row b of sums has the sums of dy·xhat, then those of dy.
KERNEL layer_norm_grad(A *dx, A *sums, const T *dy, const S *xhat, const A *rstd, const A *gain, i64 rows, i64 cols, i64 per) {
	SHARED(A, dgain);
	A *const dbias = dgain + (cols + pack - 1) / pack * pack;
	A d[pack], h[pack], g[pack], s[pack];
	for (int i = 0; i < pack; i++) s[i] = 0;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		store_pack(dgain + c, s, pack);
		store_pack(dbias + c, s, pack);
	}
	const i64 from = blockIdx.x * per, to = from + per < rows ? from + per : rows;
	for (i64 row = from; row < to; row++) {
		const i64 at = row * cols;
		A sum = 0, dot = 0;
		for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
			load_pack(d, dy + at + c, cols - c);
			load_pack(h, xhat + at + c, cols - c);
			load_pack(g, gain + c, cols - c);
			for (int i = 0; i < pack; i++) {
				sum += d[i] * g[i];
				dot += d[i] * g[i] * h[i];
			}
		}
		const A mean = block_sum(sum) / cols, along = block_sum(dot) / cols, r = rstd[row];
		for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
			load_pack(d, dy + at + c, cols - c);
			load_pack(h, xhat + at + c, cols - c);
			load_pack(s, dgain + c, pack);
			for (int i = 0; i < pack; i++) s[i] += d[i] * h[i];
			store_pack(dgain + c, s, pack);
			load_pack(s, dbias + c, pack);
			for (int i = 0; i < pack; i++) s[i] += d[i];
			store_pack(dbias + c, s, pack);
			load_pack(g, gain + c, cols - c);
			load_pack(s, dx + at + c, cols - c);
			for (int i = 0; i < pack; i++) s[i] += r * (d[i] * g[i] - mean - h[i] * along);
			store_pack(dx + at + c, s, cols - c);
		}
	}
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(s, dgain + c, pack);
		store_pack(sums + 2 * blockIdx.x * cols + c, s, cols - c);
		load_pack(s, dbias + c, pack);
		store_pack(sums + (2 * blockIdx.x + 1) * cols + c, s, cols - c);
	}
}
