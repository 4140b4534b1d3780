// Sums of columns in two steps, in an order that the shape fixes: of stretches of rows, then of those sums. Gradients of gains come
// with the first step done.

// sum_rows writes the sums of rows [b·per, (b+1)·per) of x [rows, cols] in block (b, y) to row b of sums, a pack of columns to a
// thread. It reads x once.
KERNEL sum_rows(A *sums, const T *x, i64 rows, i64 cols, i64 per) {
	const i64 c = ((i64)blockIdx.y * blockDim.x + threadIdx.x) * pack;
	if (c >= cols) return;
	A v[pack], s[pack];
	for (int i = 0; i < pack; i++) s[i] = 0;
	const i64 from = blockIdx.x * per, to = from + per < rows ? from + per : rows;
	for (i64 row = from; row < to; row++) {
		load_pack(v, x + row * cols + c, cols - c);
		for (int i = 0; i < pack; i++) s[i] += v[i];
	}
	store_pack(sums + blockIdx.x * cols + c, s, cols - c);
}

// add_columns adds the sums of columns [32·b, 32·b + 32) of x to dst [cols] in block b of 32 warps; rows of x are stride apart. Warp w
// adds rows w, w + 32, … of 32 columns, then what 32 warps have of one column.
KERNEL add_columns(A *dst, const A *x, i64 rows, i64 cols, i64 stride) {
	__shared__ A part[32][33];
	const i64 from = (i64)blockIdx.x * 32;
	A s = 0;
	if (from + lane() < cols)
		for (i64 row = warp(); row < rows; row += 32) s += x[row * stride + from + lane()];
	part[warp()][lane()] = s;
	__syncthreads();
	s = warp_sum(part[lane()][warp()]);
	if (lane() == 0 && from + warp() < cols) dst[from + warp()] += s;
}
