// Combine, for dst and x of A and y of S: 12 bytes an element where y is FP32, 10 where it is 16 bits.

// dst = a·x + b·y, and diagonal more where element i of a matrix of so many columns is a multiple of cols + 1, up to cols². dst may
// be x or y. A thread has one vector.
KERNEL combine(A *dst, const A *x, const S *y, i64 n, i64 cols, A a, A b, A diagonal) {
	constexpr int V = 16 / sizeof(A);
	const i64 first = global_thread() * V;
	if (first >= n) return;
	const bool whole = first + V <= n && aligned16(dst) && aligned16(x) && aligned16(y);
	const int count = n - first < V ? (int)(n - first) : V;
	vec<A, V> u, v;
	if (whole) {
		u = load_vec<A, V>(x + first);
		const vec<S, V> s = load_vec<S, V>(y + first);
#pragma unroll
		for (int i = 0; i < V; i++) v.v[i] = widen(s.v[i]);
	} else {
#pragma unroll
		for (int i = 0; i < V; i++) {
			u.v[i] = i < count ? x[first + i] : A(0);
			v.v[i] = i < count ? widen(y[first + i]) : A(0);
		}
	}
#pragma unroll
	for (int i = 0; i < V; i++) u.v[i] = a * u.v[i] + b * v.v[i];
	if (diagonal != 0) {
		const i64 rest = first % (cols + 1); // past an element of the diagonal
#pragma unroll
		for (int i = 0; i < V; i++)
			if ((rest + i) % (cols + 1) == 0 && first + i < cols * cols) u.v[i] += diagonal;
	}
	if (whole) {
		store_vec(dst + first, u);
		return;
	}
	for (int i = 0; i < count; i++) dst[first + i] = u.v[i];
}
