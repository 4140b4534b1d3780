// What the vendor's matrix products leave to do, and the product that stands in where there is none: to storage D, of operands in T.
#ifndef D
#define D T
#endif

// finish stores sums [rows, cols] to dst, with a bias [cols] if there is one, added to what dst holds if add is not 0.
KERNEL finish(D *dst, const A *sums, const A *bias, i64 rows, i64 cols, i64 add) {
	for (i64 i = global_thread(); i < rows * cols; i += grid_threads()) {
		A x = sums[i];
		if (bias) x += bias[i % cols];
		if (add) x += widen(dst[i]);
		narrow(dst[i], x);
	}
}

// product writes D = alpha·a·b, plus a bias, plus what D holds: a(i, k) lies at i·ai + k·ak, b(k, j) at k·bk + j·bj. A block of 256
// threads makes 32×32 elements, each the sum over k in order. It is for shapes and types that nobody trains with.
KERNEL product(D *dst, const T *a, const T *b, const A *bias, i64 m, i64 n, i64 inner, i64 ai, i64 ak, i64 bk, i64 bj, A alpha, i64 add) {
	__shared__ A as[32][33], bs[32][33];
	int x = threadIdx.x & 31, y = threadIdx.x >> 5;
	i64 row = 32 * (i64)blockIdx.y, col = 32 * (i64)blockIdx.x;
	A sums[4] = {0, 0, 0, 0};
	for (i64 k = 0; k < inner; k += 32) {
		for (int i = y; i < 32; i += 8) {
			as[i][x] = row + i < m && k + x < inner ? widen(a[(row + i) * ai + (k + x) * ak]) : A(0);
			bs[i][x] = k + i < inner && col + x < n ? widen(b[(k + i) * bk + (col + x) * bj]) : A(0);
		}
		__syncthreads();
		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 32; j++) sums[i] += as[y + 8 * i][j] * bs[j][x];
		__syncthreads();
	}
	for (int i = 0; i < 4; i++) {
		i64 r = row + y + 8 * i, c = col + x;
		if (r >= m || c >= n) continue;
		A v = alpha * sums[i];
		if (bias) v += bias[c];
		if (add) v += widen(dst[r * n + c]);
		narrow(dst[r * n + c], v);
	}
}
