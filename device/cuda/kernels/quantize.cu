// quantize rounds factor·src to the numbers of an FP8 format, of which top is the largest and least the smallest that is normal: adding
// magic, as a multiple of the number's power of two, and taking it away again rounds to the format's last place, ties to even. T is
// bf16, S stores src. A pack of n elements to a thread; it moves, per element, that of src in and 2 bytes out.
KERNEL quantize(T *dst, const S *src, i64 n, float factor, float top, float least, float magic) {
	const i64 at = global_thread() * pack;
	float v[pack];
	if (at >= n) return;
	load_pack(v, src + at, n - at);
	for (int i = 0; i < pack; i++) {
		const float y = factor * v[i];
		const float cut = fmaxf(-top, fminf(top, y));
		const float step = fmaxf(__uint_as_float(__float_as_uint(cut) & 0x7f800000u), least) * magic;
		const float r = cut + step - step + 0 * y; // NaN where y is not finite, also if the compiler fuses products and sums
		v[i] = __uint_as_float(__float_as_uint(r) | __float_as_uint(y) & 0x80000000u); // −0 stays
	}
	store_pack(dst + at, v, n - at);
}
