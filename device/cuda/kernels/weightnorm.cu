// Weight normalisation (Salimans & Kingma 2016, arXiv 1602.07868), one row to a block. T stores v, S its gradient. Rows are read twice,
// the second time from the cache. Norms are summed in float64, as on the CPU: a row that has its norm as gain keeps its bits.

// rescale returns gain/norm, or 1 for a row of zeros.
DEVICE A rescale(A gain, A norm) { return norm == 0 ? A(1) : gain / norm; }

// weight_norm moves, per element, those of v in and out.
KERNEL weight_norm(T *v, const A *gain, i64 cols) {
	const i64 at = blockIdx.x * cols;
	A x[pack];
	double squares = 0;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(x, v + at + c, cols - c);
		for (int i = 0; i < pack; i++) squares += (double)x[i] * x[i];
	}
	const A factor = rescale(gain[blockIdx.x], (A)sqrt(block_sum(squares)));
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(x, v + at + c, cols - c);
		for (int i = 0; i < pack; i++) x[i] *= factor;
		store_pack(v + at + c, x, cols - c);
	}
}

// weight_norm_grad moves, per element, those of v in and of dv in and out.
KERNEL weight_norm_grad(S *dv, A *dgain, const T *v, const A *gain, i64 cols) {
	const i64 at = blockIdx.x * cols;
	A x[pack], d[pack];
	double squares = 0, dot = 0;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(x, v + at + c, cols - c);
		load_pack(d, dv + at + c, cols - c);
		for (int i = 0; i < pack; i++) {
			squares += (double)x[i] * x[i];
			dot += (double)d[i] * x[i];
		}
	}
	const double along = block_sum(dot);
	const A norm = (A)sqrt(block_sum(squares)), factor = rescale(gain[blockIdx.x], norm);
	if (threadIdx.x == 0 && norm > 0) dgain[blockIdx.x] += (A)along / norm;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(d, dv + at + c, cols - c);
		for (int i = 0; i < pack; i++) d[i] *= factor;
		store_pack(dv + at + c, d, cols - c);
	}
}
