// Mixture of experts (Shazeer et al. 2017, arXiv 1701.06538): the router's choice, and the rows on their way to the experts and back. T
// stores the rows that a kernel writes or changes, S the others.

// before reports that logit a of expert i is chosen before b of j: the larger, and among equals the lower number. NaN is -infinity.
DEVICE bool before(A a, i64 i, A b, i64 j) { return a > b || (a == b && i < j); }

// choose returns, in a block of one warp, the expert chosen after number `last` with logit `top`: the first of all if last is negative.
DEVICE i64 choose(const A *x, i64 cols, A &top, i64 last) {
	A best = -infinity(A(0));
	i64 at = cols;
	for (i64 c = lane(); c < cols; c += 32) {
		const A v = x[c] == x[c] ? x[c] : -infinity(A(0));
		if ((last < 0 || before(top, last, v, c)) && (at == cols || before(v, c, best, at))) {
			best = v;
			at = c;
		}
	}
	for (int d = 16; d > 0; d >>= 1) {
		const A v = __shfl_xor_sync(all_lanes, best, d);
		const i64 c = __shfl_xor_sync(all_lanes, at, d);
		if (c < cols && (at == cols || before(v, c, best, at))) {
			best = v;
			at = c;
		}
	}
	top = best;
	return at;
}

// route takes rows [b·per, (b+1)·per) of logits [rows, cols] in block b of one warp, and writes the sums of their softmaxes to row b of
// sums. It reads logits k + 3 times, mostly from the cache.
KERNEL route(A *weights, int *experts, A *log_z, A *sums, const A *logits, i64 rows, i64 cols, i64 k, i64 per, i64 normalise) {
	for (i64 c = lane(); c < cols; c += 32) sums[blockIdx.x * cols + c] = 0;
	const i64 from = blockIdx.x * per, to = from + per < rows ? from + per : rows;
	for (i64 row = from; row < to; row++) {
		const A *const x = logits + row * cols;
		A top = -infinity(A(0)), sum = 0, chosen = 0;
		for (i64 c = lane(); c < cols; c += 32) top = max_of(top, x[c]);
		top = warp_max(top);
		for (i64 c = lane(); c < cols; c += 32) sum += exp_of(x[c] - top);
		sum = warp_sum(sum);
		for (i64 c = lane(); c < cols; c += 32) sums[blockIdx.x * cols + c] += exp_of(x[c] - top) / sum;
		if (lane() == 0) log_z[row] = log_of(sum) + top;
		A limit = 0;
		i64 e = -1;
		for (i64 j = 0; j < k; j++) {
			e = choose(x, cols, limit, e);
			const A p = exp_of(x[e] - top) / sum;
			chosen += p;
			if (lane() == 0) {
				experts[row * k + j] = (int)e;
				weights[row * k + j] = p;
			}
		}
		if (normalise && lane() == 0)
			for (i64 j = 0; j < k; j++) weights[row * k + j] /= chosen;
	}
}

// route_grad takes one row in a block of one warp.
KERNEL route_grad(A *dlogits, const A *dweights, const A *weights, const int *experts, const A *log_z, const int *counts, const A *logits,
	i64 cols, i64 k, i64 normalise, double balance, double z_loss) {
	const i64 row = blockIdx.x;
	const A *const x = logits + row * cols, *const w = weights + row * k, *const dw = dweights + row * k;
	const int *const chosen = experts + row * k;
	A *const d = dlogits + row * cols, z = log_z[row], mean = 0, sum = 0;
	for (i64 j = 0; j < k; j++) {
		sum += exp_of(x[chosen[j]] - z);
		mean += w[j] * dw[j];
	}
	if (!normalise) {
		sum = 1;
		mean = 0;
	}
	A dot = 0; // Σ p·dp
	for (i64 c = lane(); c < cols; c += 32) {
		A dp = A(balance) * counts[c];
		for (i64 j = 0; j < k; j++)
			if (chosen[j] == c) dp += (dw[j] - mean) / sum;
		d[c] = dp;
		dot += exp_of(x[c] - z) * dp;
	}
	const A shift = 2 * A(z_loss) * z - warp_sum(dot);
	for (i64 c = lane(); c < cols; c += 32) d[c] = exp_of(x[c] - z) * (d[c] + shift);
}

// place_keys writes, from n sorted keys expert·2³² + choice, the choices in their order and the place of each.
KERNEL place_keys(int *order, int *place, const u64 *keys, i64 n) {
	const i64 i = global_thread();
	if (i >= n) return;
	order[i] = (int)(u32)keys[i];
	place[(u32)keys[i]] = (int)i;
}

// first_of returns the number of keys of experts below e.
DEVICE i64 first_of(const u64 *keys, i64 n, u64 e) {
	i64 low = 0, high = n;
	while (low < high) {
		const i64 middle = (low + high) / 2;
		if (keys[middle] >> 32 < e)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// count_keys writes the number of keys of each expert, one to a thread.
KERNEL count_keys(int *counts, const u64 *keys, i64 n, i64 experts) {
	const i64 e = global_thread();
	if (e < experts) counts[e] = (int)(first_of(keys, n, e + 1) - first_of(keys, n, e));
}

const int elsewhere = -101; // a row of zeros

// take_rows copies row order[b]/k of src to row b of dst in block b, or zeros.
KERNEL take_rows(T *dst, const S *src, const int *order, i64 cols, i64 k) {
	A v[pack] = {0};
	const int row = order[blockIdx.x];
	const i64 from = row / k * cols, to = blockIdx.x * cols;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		if (row != elsewhere) load_pack(v, src + from + c, cols - c);
		store_pack(dst + to + c, v, cols - c);
	}
}

// mix_rows writes row b of dst in block b: the sum of k rows of src, or adds it.
KERNEL mix_rows(T *dst, const S *src, const A *weights, const int *place, i64 cols, i64 k, i64 add) {
	A v[pack], sum[pack];
	const i64 first = blockIdx.x * k;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		for (int i = 0; i < pack; i++) sum[i] = 0;
		for (i64 j = first; j < first + k; j++) {
			load_pack(v, src + place[j] * cols + c, cols - c);
			const A w = weights ? weights[j] : A(1);
			for (int i = 0; i < pack; i++) sum[i] += w * v[i];
		}
		if (add) {
			load_pack(v, dst + blockIdx.x * cols + c, cols - c);
			for (int i = 0; i < pack; i++) sum[i] += v[i];
		}
		store_pack(dst + blockIdx.x * cols + c, sum, cols - c);
	}
}

// weigh_rows takes row b of dx and x in block b.
KERNEL weigh_rows(A *dweights, T *dx, S *x, const A *weights, const int *order, i64 cols) {
	const i64 choice = order[blockIdx.x], row = blockIdx.x * cols;
	const A w = weights[choice];
	A u[pack], v[pack], dot = 0;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(u, dx + row + c, cols - c);
		load_pack(v, x + row + c, cols - c);
		for (int i = 0; i < pack; i++) {
			dot += u[i] * v[i];
			u[i] *= w;
			v[i] *= w;
		}
		store_pack(dx + row + c, u, cols - c);
		store_pack(x + row + c, v, cols - c);
	}
	dot = block_sum(dot);
	if (threadIdx.x == 0) dweights[choice] = dot;
}

// gate_rows adds sigmoid(gates[b])·row b of src to dst in block b.
KERNEL gate_rows(T *dst, const S *src, const A *gates, i64 cols) {
	const A s = 1 / (1 + exp_of(-gates[blockIdx.x]));
	const i64 row = blockIdx.x * cols;
	A u[pack], v[pack];
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(u, dst + row + c, cols - c);
		load_pack(v, src + row + c, cols - c);
		for (int i = 0; i < pack; i++) u[i] += s * v[i];
		store_pack(dst + row + c, u, cols - c);
	}
}

// gate_rows_grad takes row b in block b; dsrc may be src. U stores dy.
KERNEL gate_rows_grad(T *dsrc, A *dgates, const U *dy, const S *src, const A *gates, i64 cols) {
	const A s = 1 / (1 + exp_of(-gates[blockIdx.x]));
	const i64 row = blockIdx.x * cols;
	A u[pack], v[pack], dot = 0;
	for (i64 c = threadIdx.x * pack; c < cols; c += blockDim.x * pack) {
		load_pack(u, dy + row + c, cols - c);
		load_pack(v, src + row + c, cols - c);
		for (int i = 0; i < pack; i++) {
			dot += u[i] * v[i];
			u[i] *= s;
		}
		store_pack(dsrc + row + c, u, cols - c);
	}
	dot = block_sum(dot);
	if (threadIdx.x == 0) dgates[blockIdx.x] = s * (1 - s) * dot;
}
