// ReLU² (So et al. 2021, arXiv 2109.08668), a pack of n elements to a thread. T stores act or dx, S x, U dact.

// relu_squared moves, per element, 1 in and 1 out.
KERNEL relu_squared(T *act, const S *x, i64 n) {
	const i64 at = global_thread() * pack;
	A v[pack];
	if (at >= n) return;
	load_pack(v, x + at, n - at);
	for (int i = 0; i < pack; i++) v[i] = v[i] < 0 ? 0 : v[i] * v[i]; // NaN stays
	store_pack(act + at, v, n - at);
}

// relu_squared_grad moves, per element, 2 in and 1 out; with act, which may be dact as dx may be x, 2 out.
KERNEL relu_squared_grad(T *dx, U *act, const U *dact, const S *x, i64 n) {
	const i64 at = global_thread() * pack;
	A v[pack], d[pack];
	if (at >= n) return;
	load_pack(v, x + at, n - at);
	load_pack(d, dact + at, n - at);
	for (int i = 0; i < pack; i++) {
		d[i] *= 2 * (v[i] < 0 ? 0 : v[i]);
		v[i] = v[i] < 0 ? 0 : v[i] * v[i];
	}
	store_pack(dx + at, d, n - at);
	if (act) store_pack(act + at, v, n - at);
}
