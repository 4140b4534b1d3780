// EqualiseRows: 8 bytes an element from memory, and 4 from the cache.

const int V = 16 / sizeof(A);

// A block has a row of u [rows, cols].
KERNEL equalise_rows(A *u, A *v, i64 cols, double beta) {
	A *row = u + blockIdx.x * cols;
	const bool whole = cols % V == 0 && aligned16(u);
	const double before = v[blockIdx.x];
	A squares = 0;
	if (whole) {
		for (i64 c = threadIdx.x * V; c < cols; c += blockDim.x * V) {
			const vec<A, V> x = load_vec<A, V>(row + c);
#pragma unroll
			for (int i = 0; i < V; i++) squares += x.v[i] * x.v[i];
		}
	} else {
		for (i64 c = threadIdx.x; c < cols; c += blockDim.x) squares += row[c] * row[c];
	}
	const double mean = beta * before + (1 - beta) * block_sum((double)squares) / cols;
	const A scale = (A)(1 / (sqrt(mean) + 1e-10));
	if (threadIdx.x == 0) v[blockIdx.x] = (A)mean;
	if (whole) {
		for (i64 c = threadIdx.x * V; c < cols; c += blockDim.x * V) {
			vec<A, V> x = load_vec<A, V>(row + c);
#pragma unroll
			for (int i = 0; i < V; i++) x.v[i] *= scale;
			store_vec(row + c, x);
		}
	} else {
		for (i64 c = threadIdx.x; c < cols; c += blockDim.x) row[c] *= scale;
	}
}
