// Short convolutions (device.Device.ShortConv): column c of x [rows, cols] filtered by its k taps, [cols, k], then silu. Rows of the batch
// have length tokens; start is where each token's document begins, or null.

const int MOST = 16; // taps, a power of two

// sees reports whether token i reads the one at a distance before it.
DEVICE bool sees(const int *start, i64 i, i64 distance, i64 length) { return i % length - distance >= (start ? start[i] : 0); }

// filtered returns the sum over the taps of column c at token i, from the token itself back. x and taps are those of the column.
DEVICE A filtered(const T *x, const A *taps, const int *start, i64 i, i64 cols, i64 length, i64 k) {
	A z = 0;
	for (i64 d = 0; d < k && sees(start, i, d, length); d++) z += taps[k - 1 - d] * widen(x[(i - d) * cols]);
	return z;
}

// short_conv has a thread for each element. It reads x k times, all but the first from a cache, and writes it once.
KERNEL short_conv(T *out, const T *x, const A *taps, const int *start, i64 rows, i64 cols, i64 length, i64 k) {
	const i64 at = global_thread(), c = at % cols, i = at / cols;
	if (i >= rows) return;
	const A z = filtered(x + c, taps + c * k, start, i, cols, length, k);
	narrow(out[at], z / (1 + exp_of(-z)));
}

// short_conv_grad has a thread for a column of tokens [b·per, (b+1)·per), b = blockIdx.y: it writes dx, and the sums for the taps' gradients
// to row b of sums [blocks, cols·k]. It reads x 2·k times, all but the first from a cache, and dout once, with the k − 1 tokens that follow.
KERNEL short_conv_grad(T *dx, A *sums, const T *dout, const T *x, const A *taps, const int *start, i64 rows, i64 cols, i64 length, i64 k, i64 per) {
	const i64 c = (i64)blockIdx.x * blockDim.x + threadIdx.x;
	if (c >= cols) return;
	const i64 from = blockIdx.y * per, to = min(from + per, rows);
	A dz[MOST], sum[MOST]; // by token, and by distance
	for (int d = 0; d < MOST; d++) sum[d] = 0;
	x += c;
	taps += c * k;
	for (i64 i = from; i < to + k - 1; i++) {
		if (i < rows) {
			const A z = filtered(x, taps, start, i, cols, length, k), open = 1 / (1 + exp_of(-z));
			const A g = widen(dout[i * cols + c]) * open * (1 + z * (1 - open));
			dz[i % MOST] = g;
			for (i64 d = 0; i < to && d < k && sees(start, i, d, length); d++) sum[d] += g * widen(x[(i - d) * cols]);
		}
		const i64 r = i - k + 1; // all that read token r are there
		if (r < from) continue;
		A g = 0;
		for (i64 d = 0; d < k && r + d < rows && sees(start, r + d, d, length); d++) g += taps[k - 1 - d] * dz[(r + d) % MOST];
		narrow(dx[r * cols + c], g);
	}
	for (i64 d = 0; d < k; d++) sums[(blockIdx.y * cols + c) * k + k - 1 - d] = sum[d];
}
