// Optimizer steps that go element by element. All tensors are of A. What a step moves is 4 bytes (8 in the reference mode) for
// each tensor that it reads and for each that it writes, and that is its time.

// change runs over n elements of K tensors, of which f may alter the first W, by vectors of 16 bytes where all tensors lie so.
// A thread has one vector.
template <int W, int K, class F> DEVICE void change(A *const (&x)[K], i64 n, F f) {
	constexpr int V = 16 / sizeof(A);
	const i64 first = global_thread() * V;
	bool whole = first + V <= n;
#pragma unroll
	for (int k = 0; k < K; k++) whole &= aligned16(x[k]);
	if (whole) {
		vec<A, V> y[K];
#pragma unroll
		for (int k = 0; k < K; k++) y[k] = load_vec<A, V>(x[k] + first);
#pragma unroll
		for (int i = 0; i < V; i++) {
			A z[K];
#pragma unroll
			for (int k = 0; k < K; k++) z[k] = y[k].v[i];
			f(z);
#pragma unroll
			for (int k = 0; k < W; k++) y[k].v[i] = z[k];
		}
#pragma unroll
		for (int k = 0; k < W; k++) store_vec(x[k] + first, y[k]);
		return;
	}
	for (i64 i = first; i < n && i < first + V; i++) {
		A z[K];
#pragma unroll
		for (int k = 0; k < K; k++) z[k] = x[k][i];
		f(z);
#pragma unroll
		for (int k = 0; k < W; k++) x[k][i] = z[k];
	}
}

// fall takes the update u from p, and decay·p unless u·p is below the floor: 0 for cautious decay, else −∞.
DEVICE void fall(A &p, A u, A decay, A floor) {
	if (u * p >= floor) u += decay * p;
	p -= u;
}

// 28 bytes an element: 16 read, 12 written.
KERNEL adamw(A *p, A *g, A *m, A *v, i64 n, A scale, A beta1, A keep1, A beta2, A keep2, A decay, A rate, A correct2, A eps, A floor) {
	change<3>({p, m, v, g}, n, [&](A (&x)[4]) {
		const A d = scale * x[3];
		x[1] = beta1 * x[1] + keep1 * d;
		x[2] = beta2 * x[2] + keep2 * d * d;
		fall(x[0], rate * x[1] / (sqrt_of(correct2 * x[2]) + eps), decay, floor);
	});
}

// Adam, whose decay is part of the gradient: 28 bytes an element.
KERNEL adam(A *p, A *g, A *m, A *v, i64 n, A scale, A beta1, A keep1, A beta2, A keep2, A decay, A rate, A correct2, A eps) {
	change<3>({p, m, v, g}, n, [&](A (&x)[4]) {
		const A d = scale * x[3] + decay * x[0];
		x[1] = beta1 * x[1] + keep1 * d;
		x[2] = beta2 * x[2] + keep2 * d * d;
		x[0] -= rate * x[1] / (sqrt_of(correct2 * x[2]) + eps);
	});
}

// 20 bytes an element. The update is rate_g·g' + rate_m·m.
KERNEL momentum(A *p, A *g, A *m, i64 n, A scale, A decay, A beta, A keep, A rate_g, A rate_m) {
	change<2>({p, m, g}, n, [&](A (&x)[3]) {
		const A d = scale * x[2] + decay * x[0];
		x[1] = beta * x[1] + keep * d;
		x[0] -= rate_g * d + rate_m * x[1];
	});
}

// 20 bytes an element.
KERNEL lion(A *p, A *g, A *m, i64 n, A scale, A beta1, A keep1, A beta2, A keep2, A decay, A rate, A floor) {
	change<2>({p, m, g}, n, [&](A (&x)[3]) {
		const A d = scale * x[2];
		A u = beta1 * x[1] + keep1 * d;
		u = u > 0 ? rate : u < 0 ? -rate : u; // 0 and NaN stay
		x[1] = beta2 * x[1] + keep2 * d;
		fall(x[0], u, decay, floor);
	});
}

// 36 bytes an element.
KERNEL ademamix(A *p, A *g, A *m1, A *m2, A *v, i64 n, A scale, A beta1, A keep1, A beta2, A keep2, A beta3, A keep3,
		A rate1, A rate2, A correct2, A eps, A decay, A floor) {
	change<4>({p, m1, m2, v, g}, n, [&](A (&x)[5]) {
		const A d = scale * x[4];
		x[1] = beta1 * x[1] + keep1 * d;
		x[2] = beta3 * x[2] + keep3 * d;
		x[3] = beta2 * x[3] + keep2 * d * d;
		fall(x[0], (rate1 * x[1] + rate2 * x[2]) / (sqrt_of(correct2 * x[3]) + eps), decay, floor);
	});
}

// 12 bytes an element.
KERNEL descend(A *p, A *u, i64 n, A rate, A decay, A floor) {
	change<1>({p, u}, n, [&](A (&x)[2]) { fall(x[0], rate * x[1], decay, floor); });
}

// 24 bytes an element. Each block writes how many of its elements were not clipped.
KERNEL sophia(A *p, A *g, A *m, A *h, i64 n, A beta, A keep, A rho, A tiny, A rate, A decay, A floor, int *inside) {
	int count = 0;
	change<2>({p, m, g, h}, n, [&](A (&x)[4]) {
		x[1] = beta * x[1] + keep * x[2];
		A r = x[1] / (rho * x[3] + tiny);
		r = r >= 1 ? A(1) : r <= -1 ? A(-1) : r; // NaN stays
		count += r * r < 1;
		fall(x[0], rate * r, decay, floor);
	});
	count = block_sum(count);
	if (threadIdx.x == 0) inside[blockIdx.x] = count;
}

// total adds up n counts in one block.
KERNEL total(double *sum, const int *counts, i64 n) {
	i64 count = 0;
	for (i64 i = threadIdx.x; i < n; i += blockDim.x) count += counts[i];
	count = block_sum(count);
	if (threadIdx.x == 0) *sum = (double)count;
}

// 16 bytes an element: p ← (p + rate·w·start) / (1 + rate·w).
KERNEL anchor(A *p, A *start, A *w, i64 n, A rate) {
	change<1>({p, start, w}, n, [&](A (&x)[3]) {
		const A pull = rate * x[2];
		x[0] += pull / (1 + pull) * (x[1] - x[0]);
	});
}

// 12 bytes an element: h ← beta·h + weight·g².
KERNEL mean_square(A *h, A *g, i64 n, A beta, A weight) {
	change<1>({h, g}, n, [&](A (&x)[2]) { x[0] = beta * x[0] + weight * (x[1] * x[1]); });
}
