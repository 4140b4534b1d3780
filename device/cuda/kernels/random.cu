// Kernels with random numbers of 16 bits. Of 128 elements, number 32·w + 16·h + l takes half h of word w of block l of 16, so a thread has
// a block of four words and eight elements, 16 apart.

// dropout multiplies rows of src [rows, cols] by o's factors. T stores dst, S src, W is double if either is, else float. Thread l of 16 of
// block (row, y) takes elements 128·g + 16·i + l. It moves, per element, 1 in and 1 out, with add 2 in.
KERNEL dropout(T *dst, const S *src, i64 cols, u64 key, u64 step, u64 purpose, u64 base, i64 keep, double scale, i64 add) {
	const i64 thread = (i64)blockIdx.y * blockDim.x + threadIdx.x, g = thread / 16, l = thread % 16;
	if (g * 128 >= cols) return;
	u32 random[4] = {0, 0, 0, 0};
	if (keep < 65536) random4(random, key, (u32)step, (u32)purpose, base + ((u64)blockIdx.x << 32) + 16 * g + l);
	for (int i = 0; i < 8; i++) {
		const i64 c = g * 128 + i * 16 + l, at = blockIdx.x * cols + c;
		if (c >= cols) return;
		const W factor = (i64)(random[i / 2] >> i % 2 * 16 & 0xffff) < keep ? W(scale) : W(0);
		W x = widen(src[at]) * factor;
		if (add) x += widen(dst[at]);
		narrow(dst[at], x);
	}
}

// round_stochastic rounds n numbers to bf16: 16 random bits are added to those that are cut off. Of numbers that are not finite
// it is the nearest. It moves, per element, 4 bytes in and 2 out.
KERNEL round_stochastic(bf16 *dst, const float *src, i64 n, u64 key, u64 step, u64 purpose, u64 first) {
	const i64 thread = global_thread(), g = thread / 16, l = thread % 16;
	if (g * 128 >= n) return;
	u32 random[4];
	random4(random, key, (u32)step, (u32)purpose, first + 16 * g + l);
	for (int i = 0; i < 8; i++) {
		const i64 at = g * 128 + i * 16 + l;
		if (at >= n) return;
		const u32 bits = __float_as_uint(src[at]);
		if ((bits & 0x7f800000u) == 0x7f800000u)
			narrow(dst[at], src[at]);
		else
			dst[at].bits = (u16)((bits + (random[i / 2] >> i % 2 * 16 & 0xffff)) >> 16);
	}
}
