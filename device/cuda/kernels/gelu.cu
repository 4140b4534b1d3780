// GELU in GPT-2's form (Hendrycks & Gimpel 2016, arXiv 1606.08415), a pack of n elements to a thread. T stores act or dx, S x, U dact.
// Since (1 + tanh u)/2 is the sigmoid σ(2u), it takes one exponential:
//
//	gelu(x) = x·σ(v), v = a·x + b·x³;  gelu'(x) = σ + x·σ·(1 − σ)·(a + 3·b·x²), 1 − σ = e⁻ᵛ·σ

DEVICE A minus_v(A x) {
	return -x * (A(1.5957691216057308) + A(0.044715 * 1.5957691216057308) * x * x); // a = 2·√(2/π)
}

DEVICE A gelu_of(A x) { return x / (1 + exp_of(minus_v(x))); }

// gelu moves, per element, 1 in and 1 out.
KERNEL gelu(T *act, const S *x, i64 n) {
	const i64 at = global_thread() * pack;
	A v[pack];
	if (at >= n) return;
	load_pack(v, x + at, n - at);
	for (int i = 0; i < pack; i++) v[i] = gelu_of(v[i]);
	store_pack(act + at, v, n - at);
}

// gelu_grad moves, per element, 2 in and 1 out; with act, which may be dact as dx may be x, 2 out. The slope is taken at x
// cut at ±10, where it is 1, or 0 beside 1e-35, lest x² overflow against a σ·(1 − σ) of 0.
KERNEL gelu_grad(T *dx, U *act, const U *dact, const S *x, i64 n) {
	const i64 at = global_thread() * pack;
	A v[pack], d[pack];
	if (at >= n) return;
	load_pack(v, x + at, n - at);
	load_pack(d, dact + at, n - at);
	for (int i = 0; i < pack; i++) {
		const A z = v[i] > 10 ? A(10) : v[i] < -10 ? A(-10) : v[i]; // NaN stays
		const A e = exp_of(minus_v(z)), s = 1 / (1 + e);
		v[i] = gelu_of(v[i]);
		d[i] *= s + z * (e * s * s) * (A(1.5957691216057308) + A(3 * 0.044715 * 1.5957691216057308) * z * z);
	}
	store_pack(dx + at, d, n - at);
	if (act) store_pack(act + at, v, n - at);
}
