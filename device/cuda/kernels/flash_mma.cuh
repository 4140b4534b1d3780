// Tiles of 16-bit elements in shared memory, and their products on tensor cores, for the kernels of attention. A block is 4 warps. These kernels
// are made for more choices:
//
//	E        elements of a head
//	ROWS     queries of a block: 64, or 128, by which what is read of shared memory serves twice as many products
//	SLOPES   1 with ALiBi: a score is scaled before its maximum is taken, and less slope·distance
//	CACHED   1 if keys lie in a ring of rows
//	PARTIAL  1 if results of a block are kept apart, in FP32, since queries or keys are in several; flash_join.cu puts them together
//
// A tile has rows of E elements, zeros up to WIDTH, and lies in shared memory in rows of PITCH elements: an odd number of 16-byte
// pieces. ldmatrix reads 8 rows of a column of pieces at a time: their distances are odd multiples of 16 bytes, so that they lie in the
// 8 different groups of 4 banks, whatever E is. No swizzling is needed for it; it costs one piece in WIDTH/8+1 of shared memory.

const int WIDTH = (E + 15) / 16 * 16;
const int PITCH = WIDTH + 8;
const int PIECES = WIDTH / 8; // of 16 bytes in a row
const int STEPS = WIDTH / 16; // of the inner dimension of a product
const int THREADS = 128;

// Threads copy tiles in passes of PASS rows, each thread the same piece of every row.
const int PASS = THREADS / PIECES;

// load_rows begins to copy rows [rows, E] to shared memory: row r comes from row at(r) of matrix from, and is zero if that is below 0.
template <int rows, class At> DEVICE void load_rows(T *to, const T *from, int stride, At at) {
	const int r0 = (int)threadIdx.x / PIECES, c = (int)threadIdx.x % PIECES * 8;
	const shared_address mine = address_of(to) + (r0 * PITCH + c) * 2;
#pragma unroll
	for (int i = 0; i < rows; i += PASS) {
		const int r = r0 + i;
		if (rows % PASS != 0 && r >= rows || THREADS % PIECES != 0 && r0 >= PASS) break;
		const int row = at(r);
		const bool valid = row >= 0 && c < E;
		cp_async16(mine + i * PITCH * 2, from + (valid ? (i64)row * stride + c : 0), valid);
	}
}

// load_run does the same for neighbouring rows, of which there are count. It keeps one address, not one for each pass.
template <int rows> DEVICE void load_run(T *to, const T *from, int stride, int count) {
	const int r0 = (int)threadIdx.x / PIECES, c = (int)threadIdx.x % PIECES * 8;
	const shared_address mine = address_of(to) + (r0 * PITCH + c) * 2;
	from += (i64)r0 * stride + c;
#pragma unroll
	for (int i = 0; i < rows; i += PASS) {
		if (rows % PASS != 0 && r0 + i >= rows || THREADS % PIECES != 0 && r0 >= PASS) break;
		cp_async16(mine + i * PITCH * 2, from, r0 + i < count && c < E);
		from += PASS * stride;
	}
}

// Operands of a product, from tiles. The first operand's rows are those of the tile from row on, its inner dimension the columns; the
// second one's columns are 16 rows of the tile (along) or 16 columns (across), two operands of mma in one.
DEVICE void first_operand(u32 (&a)[4], const T *tile, int row, int step) {
	ldmatrix_x4(a, address_of(tile) + (lane() % 16 * PITCH + lane() / 16 * 8) * 2 + (row * PITCH + step * 16) * 2);
}
DEVICE void along(u32 (&b)[2][2], const T *tile, int row, int step) {
	u32 r[4];
	ldmatrix_x4(r, address_of(tile) + ((lane() % 8 + lane() / 16 * 8) * PITCH + lane() / 8 % 2 * 8) * 2 + (row * PITCH + step * 16) * 2);
	b[0][0] = r[0]; b[0][1] = r[1]; b[1][0] = r[2]; b[1][1] = r[3];
}
DEVICE void across(u32 (&b)[2][2], const T *tile, int row, int step) {
	u32 r[4];
	ldmatrix_x4_trans(r, address_of(tile) + (lane() % 16 * PITCH + lane() / 16 * 8) * 2 + (row * PITCH + step * 16) * 2);
	b[0][0] = r[0]; b[0][1] = r[1]; b[1][0] = r[2]; b[1][1] = r[3];
}

// operand_of turns results of two products, columns 0…7 and 8…15, into a first operand with these as inner dimension.
DEVICE void operand_of(u32 (&a)[4], const float (&x)[4], const float (&y)[4]) {
	a[0] = pair(x[0], x[1], T()); a[1] = pair(x[2], x[3], T());
	a[2] = pair(y[0], y[1], T()); a[3] = pair(y[2], y[3], T());
}

// add_across adds a [16, 16] · (16 rows of a tile, from row on) to sums [16, WIDTH].
DEVICE void add_across(float (&sums)[2 * STEPS][4], const u32 (&a)[4], const T *tile, int row) {
#pragma unroll
	for (int s = 0; s < STEPS; s++) {
		u32 b[2][2];
		across(b, tile, row, s);
		mma(sums[2 * s], a, b[0], T());
		mma(sums[2 * s + 1], a, b[1], T());
	}
}

// stage rounds factor[half]·sums, 16 rows of a warp from row on, into a tile.
DEVICE void stage(T *tile, const float (&sums)[2 * STEPS][4], int row, float factor0, float factor1) {
#pragma unroll
	for (int n = 0; n < 2 * STEPS; n++) {
		T *to = tile + (row + lane() / 4) * PITCH + n * 8 + lane() % 4 * 2;
		*reinterpret_cast<u32 *>(to) = pair(sums[n][0] * factor0, sums[n][1] * factor0, T());
		*reinterpret_cast<u32 *>(to + 8 * PITCH) = pair(sums[n][2] * factor1, sums[n][3] * factor1, T());
	}
}

// store_rows copies 16 rows of a tile, from row on, to rows at(r) of a matrix, but for those below 0. The calling warp has written them.
template <class At> DEVICE void store_rows(T *to, int stride, const T *tile, int row, At at) {
	__syncwarp();
	for (int i = lane(); i < 16 * (E / 8); i += 32) {
		int r = row + i / (E / 8), c = i % (E / 8) * 8;
		const int to_row = at(r);
		if (to_row >= 0) store_vec(to + (i64)to_row * stride + c, load_vec<T, 8>(tile + r * PITCH + c));
	}
}

// keep stores 16 rows of sums in FP32, in rows from row on of an array [·, E].
DEVICE void keep(float *to, const float (&sums)[2 * STEPS][4], int row, float factor0, float factor1) {
#pragma unroll
	for (int n = 0; n < 2 * STEPS; n++) {
		int c = n * 8 + lane() % 4 * 2;
		if (c >= E) break;
		float *at = to + (i64)(row + lane() / 4) * E + c;
		store_vec(at, vec<float, 2>{{sums[n][0] * factor0, sums[n][1] * factor0}});
		store_vec(at + 8 * E, vec<float, 2>{{sums[n][2] * factor1, sums[n][3] * factor1}});
	}
}
