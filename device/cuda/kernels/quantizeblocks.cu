// quantize_blocks rounds blocks of high × wide numbers of src [rows, cols] to E4M3 times a power of two of their own: the least with which
// the largest magnitude of a block is at most 448 times it. T is bf16, S stores src, dst may be src. A warp takes a block, and the warps
// of a thread block take neighbours in a row of blocks. It reads src twice, the second time from a cache, and writes 2 bytes per number.
KERNEL quantize_blocks(T *dst, const S *src, i64 rows, i64 cols, i64 high, i64 wide) {
	const i64 across = (cols + wide - 1) / wide, block = (i64)blockIdx.x * (blockDim.x >> 5) + warp();
	const i64 top = block / across * high, left = block % across * wide;
	if (top >= rows) return; // the whole warp
	const i64 width = min(wide, cols - left), count = width * min(high, rows - top);
	u32 most = 0; // the bits of magnitudes have their order, and NaN is above all
	for (i64 i = lane(); i < count; i += 32)
		most = max(most, __float_as_uint(widen(src[(top + i / width) * cols + left + i % width])) & 0x7fffffffu);
	for (int d = 16; d > 0; d >>= 1) most = max(most, __shfl_xor_sync(all_lanes, most, d));
	const bool finite = most < 0x7f800000u;
	// 448 is 1.75·2⁸: the power is that of the magnitude less 8, and one more for magnitudes above 1.75.
	int power = (int)(most >> 23) - 127 - 8 + ((most & 0x7fffffu) > 0x600000u ? 1 : 0);
	power = most == 0 || !finite ? 0 : power < -126 ? -126 : power;
	const float factor = __uint_as_float((u32)(127 - power) << 23), inverse = __uint_as_float((u32)(127 + power) << 23);
	for (i64 i = lane(); i < count; i += 32) {
		const i64 at = (top + i / width) * cols + left + i % width;
		const float y = widen(src[at]) * factor;
		const float step = fmaxf(__uint_as_float(__float_as_uint(y) & 0x7f800000u), 0x1p-6f) * 0x1.8p20f;
		const float r = __uint_as_float(__float_as_uint(y + step - step) | __float_as_uint(y) & 0x80000000u); // −0 stays
		narrow(dst[at], finite ? r * inverse : __uint_as_float(0x7fc00000u));
	}
}
