// GeGLU (Shazeer 2020, arXiv 2002.05202) with the gelu of gelu.cu, laid out like swiglu.cu. The gate is cut at -10, where
// gelu is 0 beside 1e-37, so that forward and backward share one exponential that does not overflow. T stores act or dgu,
// S gu, U dact.

// sigmoid_of returns σ(a·x + b·x³), a = 2·√(2/π), and e = e⁻⁽ᵃˣ⁺ᵇˣ³⁾.
DEVICE A sigmoid_of(A x, A &e) {
	e = exp_of(-x * (A(1.5957691216057308) + A(0.044715 * 1.5957691216057308) * x * x));
	return 1 / (1 + e);
}

// geglu moves, per element of act, 2 of gu in and 1 out.
KERNEL geglu(T *act, const S *gu, i64 cols) {
	const i64 c = ((i64)blockIdx.y * blockDim.x + threadIdx.x) * pack;
	if (c >= cols) return;
	A g[pack], u[pack], e;
	load_pack(g, gu + 2 * blockIdx.x * cols + c, cols - c);
	load_pack(u, gu + (2 * blockIdx.x + 1) * cols + c, cols - c);
	for (int i = 0; i < pack; i++) {
		const A v = g[i] < -10 ? A(-10) : g[i], x = v > 10 ? A(10) : v; // NaN stays
		u[i] *= v * sigmoid_of(x, e);
	}
	store_pack(act + blockIdx.x * cols + c, u, cols - c);
}

// geglu_grad moves, per element of dact, that and 2 of gu in, and 2 out; with act, which may be dact as dgu may be gu, 3 out.
KERNEL geglu_grad(T *dgu, U *act, const U *dact, const S *gu, i64 cols) {
	const i64 c = ((i64)blockIdx.y * blockDim.x + threadIdx.x) * pack;
	if (c >= cols) return;
	const i64 gate = 2 * blockIdx.x * cols + c, up = gate + cols;
	A g[pack], u[pack], d[pack], a[pack], e;
	load_pack(g, gu + gate, cols - c);
	load_pack(u, gu + up, cols - c);
	load_pack(d, dact + blockIdx.x * cols + c, cols - c);
	for (int i = 0; i < pack; i++) {
		const A v = g[i] < -10 ? A(-10) : g[i], x = v > 10 ? A(10) : v;
		const A s = sigmoid_of(x, e), gelu = v * s;
		a[i] = u[i] * gelu;
		g[i] = d[i] * u[i] * (s + x * (e * s * s) * (A(1.5957691216057308) + A(3 * 0.044715 * 1.5957691216057308) * x * x));
		u[i] = d[i] * gelu;
	}
	store_pack(dgu + gate, g, cols - c);
	store_pack(dgu + up, u, cols - c);
	if (act) store_pack(act + blockIdx.x * cols + c, a, cols - c);
}
