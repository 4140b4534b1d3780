// SwiGLU (Shazeer 2020, arXiv 2002.05202): block (row, b) takes the b-th stretch of a row, a pack to a thread. T stores act or dgu, S gu,
// U dact.

// swiglu moves, per element of act, 2 of gu in and 1 out.
KERNEL swiglu(T *act, const S *gu, i64 cols) {
	const i64 c = ((i64)blockIdx.y * blockDim.x + threadIdx.x) * pack;
	if (c >= cols) return;
	A g[pack], u[pack];
	load_pack(g, gu + 2 * blockIdx.x * cols + c, cols - c);
	load_pack(u, gu + (2 * blockIdx.x + 1) * cols + c, cols - c);
	for (int i = 0; i < pack; i++) u[i] *= g[i] * (1 / (1 + exp_of(-g[i])));
	store_pack(act + blockIdx.x * cols + c, u, cols - c);
}

// swiglu_grad moves, per element of dact, that and 2 of gu in, and 2 out; with act, which may be dact as dgu may be gu, 3 out.
KERNEL swiglu_grad(T *dgu, U *act, const U *dact, const S *gu, i64 cols) {
	const i64 c = ((i64)blockIdx.y * blockDim.x + threadIdx.x) * pack;
	if (c >= cols) return;
	const i64 gate = 2 * blockIdx.x * cols + c, up = gate + cols;
	A g[pack], u[pack], d[pack], a[pack];
	load_pack(g, gu + gate, cols - c);
	load_pack(u, gu + up, cols - c);
	load_pack(d, dact + blockIdx.x * cols + c, cols - c);
	for (int i = 0; i < pack; i++) {
		const A s = 1 / (1 + exp_of(-g[i])), silu = g[i] * s;
		a[i] = u[i] * silu;
		g[i] = d[i] * u[i] * (s + silu * (1 - s));
		u[i] = d[i] * silu;
	}
	store_pack(dgu + gate, g, cols - c);
	store_pack(dgu + up, u, cols - c);
	if (act) store_pack(act + blockIdx.x * cols + c, a, cols - c);
}
