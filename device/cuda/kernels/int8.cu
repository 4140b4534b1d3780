// Numbers as int8 in blocks of 256, each with a scale. T stores the numbers and the scales.

DEVICE float nearest(float x) { return rintf(x); }
DEVICE double nearest(double x) { return rint(x); }

// encode_int8 encodes block blockIdx.x of n numbers by one warp: the magnitude, in parts of 65,536 of the scale, is rounded to an
// integer, and 16 random bits carry into the upper half, which is kept. Thread l takes elements 128·(l/16) + 16·i + l%16 of the block, as
// random numbers of 16 bits go (random.cu). It moves, per element, 1 in and 1 byte out.
KERNEL encode_int8(u8 *codes, T *scales, const T *src, i64 n, u64 key, u64 step, u64 purpose, u64 first) {
	const i64 block = blockIdx.x, g = 2 * block + lane() / 16, l = lane() % 16;
	T x[8], most = 0;
	bool finite = true;
	for (int i = 0; i < 8; i++) {
		const i64 at = g * 128 + i * 16 + l;
		x[i] = at < n ? src[at] : T(0);
		finite = finite && x[i] - x[i] == T(0);
		most = max_of(most, abs_of(x[i]));
	}
	finite = warp_sum(finite ? 0.0f : 1.0f) == 0.0f;
	T scale = warp_max(most) / T(127);
	const bool encoded = finite && scale >= T(0x1p-110);
	if (!encoded) scale = finite ? -T(0) : infinity(T(0)) - infinity(T(0));
	if (lane() == 0) scales[block] = scale;
	const T units = T(65536) / scale;
	u32 random[4];
	random4(random, key, (u32)step, (u32)purpose, first + 16 * g + l);
	for (int i = 0; i < 8; i++) {
		const i64 at = g * 128 + i * 16 + l;
		if (at >= n) return;
		int code = 0;
		if (encoded) {
			code = (int)((u32)(int)nearest(abs_of(x[i]) * units) + (random[i / 2] >> i % 2 * 16 & 0xffff)) >> 16;
			code = code < 127 ? code : 127;
			if (x[i] < T(0)) code = -code;
		}
		codes[at] = (u8)code;
	}
}

// decode_int8 moves, per element, 1 byte in and 1 out.
KERNEL decode_int8(T *dst, const u8 *codes, const T *scales, i64 n) {
	const i64 at = global_thread() * pack;
	T x[pack];
	if (at >= n) return;
	const T scale = scales[at / 256];
	for (int i = 0; i < pack; i++) x[i] = at + i < n ? T((signed char)codes[at + i]) * scale : T(0);
	store_pack(dst + at, x, n - at);
}
