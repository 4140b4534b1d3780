// Mixing two residual streams: x, y and weights of A, kept of S. Bytes are those of FP32 and of a kept stream in 16 bits.

const int V = 16 / sizeof(A);
const int stretch = 8; // vectors of a thread of the gradient, a block's width apart

// mix_streams turns x into weights[0]·x + weights[1]·y; kept, unless it is null, receives x as it was: 12 bytes an element, 14 with
// kept. A thread has one vector.
KERNEL mix_streams(A *x, S *kept, const A *y, const A *weights, i64 n) {
	const A a = weights[0], b = weights[1];
	const i64 first = global_thread() * V;
	if (first + V <= n && aligned16(x) && aligned16(y) && aligned16(kept)) {
		vec<A, V> u = load_vec<A, V>(x + first);
		const vec<A, V> v = load_vec<A, V>(y + first);
		vec<S, V> before;
#pragma unroll
		for (int i = 0; i < V; i++) {
			narrow(before.v[i], u.v[i]);
			u.v[i] = a * u.v[i] + b * v.v[i];
		}
		store_vec(x + first, u);
		if (kept) store_vec(kept + first, before);
		return;
	}
	for (i64 i = first; i < n && i < first + V; i++) {
		if (kept) narrow(kept[i], x[i]);
		x[i] = a * x[i] + b * y[i];
	}
}

// mix_streams_grad adds weights[1]·dx to dy and makes dx weights[0]·dx; sums [blocks, 2] receives the block's Σ dx·kept and Σ dx·y:
// 22 bytes an element.
KERNEL mix_streams_grad(A *dx, A *dy, double *sums, const S *kept, const A *y, const A *weights, i64 n) {
	const A a = weights[0], b = weights[1];
	const bool aligned = aligned16(dx) && aligned16(dy) && aligned16(kept) && aligned16(y);
	A of_x = 0, of_y = 0;
	for (int k = 0; k < stretch; k++) {
		const i64 first = (((i64)blockIdx.x * stretch + k) * blockDim.x + threadIdx.x) * V;
		if (first + V <= n && aligned) {
			vec<A, V> d = load_vec<A, V>(dx + first), e = load_vec<A, V>(dy + first);
			const vec<A, V> v = load_vec<A, V>(y + first);
			const vec<S, V> u = load_vec<S, V>(kept + first);
#pragma unroll
			for (int i = 0; i < V; i++) {
				of_x += d.v[i] * widen(u.v[i]);
				of_y += d.v[i] * v.v[i];
				e.v[i] += b * d.v[i];
				d.v[i] *= a;
			}
			store_vec(dx + first, d);
			store_vec(dy + first, e);
			continue;
		}
		for (i64 i = first; i < n && i < first + V; i++) {
			const A d = dx[i];
			of_x += d * widen(kept[i]);
			of_y += d * y[i];
			dy[i] += b * d;
			dx[i] = a * d;
		}
	}
	const double sum_x = block_sum((double)of_x), sum_y = block_sum((double)of_y);
	if (threadIdx.x == 0) {
		sums[2 * (i64)blockIdx.x] = sum_x;
		sums[2 * (i64)blockIdx.x + 1] = sum_y;
	}
}

// add_sums adds the sums of n blocks to the gradients of the weights, in one block.
KERNEL add_sums(A *dweights, const double *sums, i64 n) {
	double x = 0, y = 0;
	for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
		x += sums[2 * i];
		y += sums[2 * i + 1];
	}
	x = block_sum(x);
	y = block_sum(y);
	if (threadIdx.x == 0) {
		dweights[0] += (A)x;
		dweights[1] += (A)y;
	}
}
