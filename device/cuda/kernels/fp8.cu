// Numbers of an FP8 format of MANTISSA bits, 3 for E4M3 and 2 for E5M2.
#ifndef MANTISSA
#define MANTISSA 3
#endif

// fp8 writes from [rows, cols], BF16 that holds numbers of the format, in that format; with
// across not 0 transposed. A block takes 64×64 elements: 3 bytes each.
DEVICE u8 to_fp8(bf16 x) {
	const int bias = MANTISSA == 3 ? 7 : 15;
	u32 sign = (u32)x.bits >> 15 << 7, e = (u32)x.bits >> 7 & 255, significand = (u32)x.bits & 127 | (e ? 128 : 0);
	if (e == 255) return (u8)(sign | 0x7f); // NaN
	int low = (int)e - 127 + bias; // the exponent as the format has it
	if (low >= 1) return (u8)(sign | (u32)low << MANTISSA | (significand & 127) >> (7 - MANTISSA));
	int shift = 7 - MANTISSA + 1 - low;
	return (u8)(sign | (shift > 8 ? 0 : significand >> shift));
}

KERNEL fp8(u8 *to, const bf16 *from, i64 rows, i64 cols, i64 across) {
	__shared__ u8 tile[64][65];
	i64 row = 64 * (i64)blockIdx.y, col = 64 * (i64)blockIdx.x;
	int x = threadIdx.x & 63, y = threadIdx.x >> 6;
	for (int i = y; i < 64; i += 4)
		if (row + i < rows && col + x < cols) tile[i][x] = to_fp8(from[(row + i) * cols + col + x]);
	__syncthreads();
	for (int i = y; i < 64; i += 4) {
		if (across) {
			if (col + i < cols && row + x < rows) to[(col + i) * rows + row + x] = tile[x][i];
		} else if (row + i < rows && col + x < cols) {
			to[(row + i) * cols + col + x] = tile[i][x];
		}
	}
}
