// Kernels without a row, a pack of n elements to a thread. T stores what is written, S what is added or copied; W is double if either is,
// else float.

// convert moves, per element, 1 in and 1 out.
KERNEL convert(T *dst, const S *src, i64 n) {
	const i64 at = global_thread() * pack;
	W v[pack];
	if (at >= n) return;
	load_pack(v, src + at, n - at);
	store_pack(dst + at, v, n - at);
}

// add moves, per element, 2 in and 1 out.
KERNEL add(T *dst, const S *src, i64 n) {
	const i64 at = global_thread() * pack;
	W v[pack], d[pack];
	if (at >= n) return;
	load_pack(v, src + at, n - at);
	load_pack(d, dst + at, n - at);
	for (int i = 0; i < pack; i++) d[i] += v[i];
	store_pack(dst + at, d, n - at);
}

// scale moves, per element, 1 in and 1 out.
KERNEL scale(T *t, i64 n, A factor) {
	const i64 at = global_thread() * pack;
	A v[pack];
	if (at >= n) return;
	load_pack(v, t + at, n - at);
	for (int i = 0; i < pack; i++) v[i] *= factor;
	store_pack(t + at, v, n - at);
}
