// Products of small matrices in A, by blocks of 256 threads: a tile of 64×64 elements, of which a thread has 4×4, from operands that are
// made as they are read.

const int side = 64;         // of a tile
const int depth = 32;        // of the inner dimension at a time
const int stride = side + 4; // of a row in shared memory
const int threads = 256;     // 16×16

// quad reads four neighbours, of which n are there; the rest are zeros. p may be null.
template <class S> DEVICE void quad(A (&v)[4], const S *p, int n) {
	constexpr int V = sizeof(S) < 8 ? 4 : 2;
	if (p && n >= 4 && (reinterpret_cast<u64>(p) & (V * sizeof(S) - 1)) == 0) {
#pragma unroll
		for (int i = 0; i < 4; i += V) {
			const vec<S, V> x = load_vec<S, V>(p + i);
#pragma unroll
			for (int j = 0; j < V; j++) v[i + j] = widen(x.v[j]);
		}
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++) v[i] = p && i < n ? widen(p[i]) : A(0);
}

// put_quad writes the first n of four neighbours.
template <class S> DEVICE void put_quad(S *p, const A (&v)[4], int n) {
	constexpr int V = sizeof(S) < 8 ? 4 : 2;
	if (n >= 4 && (reinterpret_cast<u64>(p) & (V * sizeof(S) - 1)) == 0) {
#pragma unroll
		for (int i = 0; i < 4; i += V) {
			vec<S, V> x;
#pragma unroll
			for (int j = 0; j < V; j++) narrow(x.v[j], v[i + j]);
			store_vec(p + i, x);
		}
		return;
	}
#pragma unroll
	for (int i = 0; i < 4; i++)
		if (i < n) narrow(p[i], v[i]);
}

// times multiplies four numbers.
DEVICE void times(A (&v)[4], A x) {
#pragma unroll
	for (int i = 0; i < 4; i++) v[i] *= x;
}

// An operand of a product is a function (v, row, col) that reads four neighbours of a row of a matrix. With along the inner dimension of the
// product goes along its rows, else down its columns. A thread reads two quads of a slice of the inner dimension, and puts them into a
// tile [depth, stride].
template <bool along, class M> DEVICE void fetch(A (&v)[2][4], const M &m, int k0) {
	const int t = threadIdx.x;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (along) m(v[i], t / 8 + 32 * i, k0 + t % 8 * 4);
		else m(v[i], k0 + t / 16 + 16 * i, t % 16 * 4);
	}
}
template <bool along> DEVICE void put(A *tile, const A (&v)[2][4]) {
	const int t = threadIdx.x;
#pragma unroll
	for (int i = 0; i < 2; i++)
#pragma unroll
		for (int j = 0; j < 4; j++) {
			if (along) tile[(t % 8 * 4 + j) * stride + t / 8 + 32 * i] = v[i][j];
			else tile[(t / 16 + 16 * i) * stride + t % 16 * 4 + j] = v[i][j];
		}
}

// row0 and col0 are where a thread's elements of a tile begin.
DEVICE int row0() { return (int)threadIdx.x / 16 * 4; }
DEVICE int col0() { return (int)threadIdx.x % 16 * 4; }

// fused is x·y + z, rounded once.
DEVICE float fused(float x, float y, float z) { return fmaf(x, y, z); }
DEVICE double fused(double x, double y, double z) { return fma(x, y, z); }

// add_products adds those of tiles a [n, rows] and b [n, cols].
DEVICE void add_products(A (&sum)[4][4], const A *a, const A *b, int n) {
#pragma unroll 8
	for (int k = 0; k < n; k++) {
		const vec<A, 4> x = load_vec<A, 4>(a + k * stride + row0()), y = load_vec<A, 4>(b + k * stride + col0());
#pragma unroll
		for (int i = 0; i < 4; i++)
#pragma unroll
			for (int j = 0; j < 4; j++) sum[i][j] = fused(x.v[i], y.v[j], sum[i][j]);
	}
}

// multiply adds the product of two operands to a tile of sums; its slices go through two tiles of shared memory. seen is given each slice
// of b, [depth, stride], and its place along the inner dimension.
struct ignored {
	__device__ void operator()(const A *, int) const {}
};
template <bool a_along, bool b_along, class MA, class MB, class F = ignored>
DEVICE void multiply(A (&sum)[4][4], A *shared, const MA &a, const MB &b, int inner, const F &seen = F()) {
	A *const at = shared, *const bt = shared + depth * stride;
	A x[2][4], y[2][4];
	fetch<a_along>(x, a, 0);
	fetch<b_along>(y, b, 0);
	for (int k = 0; k < inner; k += depth) {
		__syncthreads();
		put<a_along>(at, x);
		put<b_along>(bt, y);
		__syncthreads();
		if (k + depth < inner) {
			fetch<a_along>(x, a, k + depth);
			fetch<b_along>(y, b, k + depth);
		}
		add_products(sum, at, bt, depth);
		seen(bt, k);
	}
}

// multiply_scores adds the product of the transpose of w, a tile [side, rows] in shared memory, and b [side, cols].
template <class MB> DEVICE void multiply_scores(A (&sum)[4][4], A *shared, const A *w, const MB &b) {
	A y[2][4];
	for (int k = 0; k < side; k += depth) {
		fetch<false>(y, b, k);
		__syncthreads();
		put<false>(shared, y);
		__syncthreads();
		add_products(sum, w + k * stride, shared, depth);
	}
}

DEVICE void zeros(A (&sum)[4][4]) {
#pragma unroll
	for (int i = 0; i < 4; i++)
#pragma unroll
		for (int j = 0; j < 4; j++) sum[i][j] = 0;
}

// store_scores writes a thread's elements to w [rows, stride].
DEVICE void store_scores(A *w, const A (&sum)[4][4]) {
#pragma unroll
	for (int i = 0; i < 4; i++) {
		vec<A, 4> x;
#pragma unroll
		for (int j = 0; j < 4; j++) x.v[j] = sum[i][j];
		store_vec(w + (row0() + i) * stride + col0(), x);
	}
}
