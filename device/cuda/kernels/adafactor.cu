// Adafactor in passes over the parameter, whose numbers stay on the device: the second moment, the sizes of the update and of the
// parameter, the rate that follows from them, and the update. Sums go by tiles of the matrix and then by the numbers of the tiles;
// those of more than a tile are in double. Bytes are those of A = float.

const int V = 16 / sizeof(A);
const int warps = 8;          // of a block
const int tile_cols = 32 * V; // a lane has V columns
const int tile_rows = 64;     // a warp has every eighth

// A tile of a matrix [rows, cols], as a lane sees it.
struct tile {
	i64 across, down; // its place among the tiles
	i64 row, end;     // its rows
	i64 col, cols;    // the lane's first column, and the columns of the matrix
};

DEVICE tile this_tile(i64 rows, i64 cols) {
	tile t;
	const i64 wide = (cols + tile_cols - 1) / tile_cols;
	t.across = blockIdx.x % wide;
	t.down = blockIdx.x / wide;
	t.row = t.down * tile_rows;
	t.end = t.row + tile_rows < rows ? t.row + tile_rows : rows;
	t.col = t.across * tile_cols + lane() * V;
	t.cols = cols;
	return t;
}

// whole reports whether the lane's columns are one vector in memory.
DEVICE bool whole(const tile &t, const A *x) { return t.col + V <= t.cols && t.cols % V == 0 && aligned16(x); }

// get reads the lane's elements of row r; behind the last column are zeros.
DEVICE vec<A, V> get(const A *x, const tile &t, i64 r) {
	const A *from = x + r * t.cols + t.col;
	if (whole(t, x)) return load_vec<A, V>(from);
	vec<A, V> y;
#pragma unroll
	for (int i = 0; i < V; i++) y.v[i] = t.col + i < t.cols ? from[i] : A(0);
	return y;
}

DEVICE void put(A *x, const tile &t, i64 r, const vec<A, V> &y) {
	A *to = x + r * t.cols + t.col;
	if (whole(t, x)) {
		store_vec(to, y);
		return;
	}
#pragma unroll
	for (int i = 0; i < V; i++)
		if (t.col + i < t.cols) to[i] = y.v[i];
}

// squares writes the sums of g² over each tile's columns, by_row [tiles across, rows], and over its rows, by_col [tiles down, cols]:
// 4 bytes an element.
KERNEL squares(const A *g, i64 rows, i64 cols, A *by_row, A *by_col) {
	__shared__ A part[warps][tile_cols];
	const tile t = this_tile(rows, cols);
	vec<A, V> sum = {};
	for (i64 r = t.row + warp(); r < t.end; r += warps) {
		const vec<A, V> x = get(g, t, r);
		A row = 0;
#pragma unroll
		for (int i = 0; i < V; i++) {
			row += x.v[i] * x.v[i];
			sum.v[i] += x.v[i] * x.v[i];
		}
		row = warp_sum(row);
		if (lane() == 0) by_row[t.across * rows + r] = row;
	}
	store_vec(&part[warp()][lane() * V], sum);
	__syncthreads();
	const i64 col = t.across * tile_cols + threadIdx.x;
	if (threadIdx.x < tile_cols && col < cols) {
		A column = 0;
		for (int w = 0; w < warps; w++) column += part[w][threadIdx.x];
		by_col[t.down * cols + col] = column;
	}
}

// settle makes of the sums the means v [rows] and c [cols], one to a thread. square is the factor of g².
KERNEL settle(A *v, A *c, const A *by_row, const A *by_col, i64 rows, i64 cols, double beta, double keep, double square, double eps) {
	i64 i = global_thread();
	if (i >= rows + cols) return;
	const bool row = i < rows;
	if (!row) i -= rows;
	const A *part = (row ? by_row : by_col) + i;
	const i64 stride = row ? rows : cols, over = row ? cols : rows, tile = row ? tile_cols : tile_rows;
	double sum = 0;
	for (i64 t = 0; t * tile < over; t++) sum += part[t * stride];
	A *mean = (row ? v : c) + i;
	*mean = (A)(beta * *mean + keep * (square * sum / over + eps));
}

// mean writes that of n numbers, in one block.
KERNEL mean(double *to, const A *x, i64 n) {
	double sum = 0;
	for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
	sum = block_sum(sum);
	if (threadIdx.x == 0) *to = sum / n;
}

// A direction makes updates of gradients: g'_ij / sqrt(v_i·c_j / mean(v)).
struct direction {
	A scale, mean;
	vec<A, V> col; // 1/sqrt(c) of the lane's columns
};

DEVICE direction direct(const tile &t, const A *c, A scale, const double *mean) {
	direction d;
	d.scale = scale;
	d.mean = (A)*mean;
#pragma unroll
	for (int i = 0; i < V; i++) d.col.v[i] = t.col + i < t.cols ? 1 / sqrt_of(c[t.col + i]) : A(0);
	return d;
}

DEVICE A of_row(const direction &d, A v) { return d.scale * sqrt_of(d.mean / v); }

// finish_sizes writes the block's part of Σ u² and Σ p².
DEVICE void finish_sizes(double *sizes, A u, A p) {
	const double of_u = block_sum((double)u), of_p = block_sum((double)p);
	if (threadIdx.x == 0) {
		sizes[2 * (i64)blockIdx.x] = of_u;
		sizes[2 * (i64)blockIdx.x + 1] = of_p;
	}
}

// measure writes to sizes [tiles, 2] the sums of the squares of updates and, unless p is null, of the parameter: 8 bytes an element.
KERNEL measure(double *sizes, const A *p, const A *g, const A *v, const A *c, i64 rows, i64 cols, A scale, const double *mean) {
	const tile t = this_tile(rows, cols);
	const direction d = direct(t, c, scale, mean);
	A of_u = 0, of_p = 0;
	for (i64 r = t.row + warp(); r < t.end; r += warps) {
		const A row = of_row(d, v[r]);
		const vec<A, V> x = get(g, t, r);
#pragma unroll
		for (int i = 0; i < V; i++) {
			const A u = row * d.col.v[i] * x.v[i];
			of_u += u * u;
		}
		if (!p) continue;
		const vec<A, V> y = get(p, t, r);
#pragma unroll
		for (int i = 0; i < V; i++) of_p += y.v[i] * y.v[i];
	}
	finish_sizes(sizes, of_u, of_p);
}

// rate writes what updates are multiplied by, in one block, from n pairs of sizes of a parameter of so many elements.
KERNEL rate(double *to, const double *sizes, i64 n, i64 elements, double lr, double clip, double min_scale, i64 absolute) {
	double u = 0, p = 0;
	for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
		u += sizes[2 * i];
		p += sizes[2 * i + 1];
	}
	u = sqrt(block_sum(u) / elements) / clip;
	p = sqrt(block_sum(p) / elements);
	if (threadIdx.x > 0) return;
	double x = u <= 1 ? lr : lr / u; // of NaN is NaN
	if (!absolute) x *= p <= min_scale ? min_scale : p;
	*to = x;
}

// take lets the parameter fall by rate·u, by way of the momentum if there is one.
struct taker {
	A rate, beta, shrink, floor;
};

DEVICE void take(A &p, A *m, A u, const taker &t) {
	u *= t.rate;
	if (m) u = *m = t.beta * *m + (1 - t.beta) * u;
	if (u * p >= t.floor) u += t.shrink * p;
	p -= u;
}

// update takes the step: 12 bytes an element, 20 with momentum.
KERNEL update(A *p, const A *g, A *m, const A *v, const A *c, i64 rows, i64 cols, A scale, const double *mean, const double *rate,
		A beta, A shrink, A floor) {
	const tile t = this_tile(rows, cols);
	const direction d = direct(t, c, scale, mean);
	const taker by = {(A)*rate, beta, shrink, floor};
	for (i64 r = t.row + warp(); r < t.end; r += warps) {
		const A row = of_row(d, v[r]);
		const vec<A, V> x = get(g, t, r);
		vec<A, V> y = get(p, t, r), z = m ? get(m, t, r) : vec<A, V>{};
#pragma unroll
		for (int i = 0; i < V; i++) take(y.v[i], m ? &z.v[i] : nullptr, row * d.col.v[i] * x.v[i], by);
		put(p, t, r, y);
		if (m) put(m, t, r, z);
	}
}

// Where the second moment is whole a parameter is a line, of which a block has a stretch of 8 vectors to a thread: a matrix of
// one row to the functions above, whose lane's column changes.
const int stretch = 8;

template <class F> DEVICE void each_vector(i64 n, F f) {
	const i64 first = (i64)blockIdx.x * blockDim.x * V * stretch;
	for (int k = 0; k < stretch; k++) {
		tile t;
		t.col = first + ((i64)k * blockDim.x + threadIdx.x) * V;
		t.cols = n;
		if (t.col < n) f(t);
	}
}

// measure_whole settles v and writes to sizes [blocks, 2]: 16 bytes an element, 12 if p is null.
KERNEL measure_whole(double *sizes, const A *p, const A *g, A *v, i64 n, A scale, A beta, A keep, A eps) {
	A of_u = 0, of_p = 0;
	each_vector(n, [&](const tile &t) {
		const vec<A, V> x = get(g, t, 0);
		vec<A, V> mean = get(v, t, 0);
#pragma unroll
		for (int i = 0; i < V; i++) {
			const A d = scale * x.v[i];
			mean.v[i] = beta * mean.v[i] + keep * (d * d + eps);
			if (t.col + i < n) of_u += d / mean.v[i] * d;
		}
		put(v, t, 0, mean);
		if (!p) return;
		const vec<A, V> y = get(p, t, 0);
#pragma unroll
		for (int i = 0; i < V; i++) of_p += y.v[i] * y.v[i];
	});
	finish_sizes(sizes, of_u, of_p);
}

// update_whole takes the step: 16 bytes an element, 24 with momentum.
KERNEL update_whole(A *p, const A *g, A *m, const A *v, i64 n, A scale, const double *rate, A beta, A shrink, A floor) {
	const taker by = {(A)*rate, beta, shrink, floor};
	each_vector(n, [&](const tile &t) {
		const vec<A, V> x = get(g, t, 0), mean = get(v, t, 0);
		vec<A, V> y = get(p, t, 0), z = m ? get(m, t, 0) : vec<A, V>{};
#pragma unroll
		for (int i = 0; i < V; i++)
			if (t.col + i < n) take(y.v[i], m ? &z.v[i] : nullptr, scale * x.v[i] / sqrt_of(mean.v[i]), by);
		put(p, t, 0, y);
		if (m) put(m, t, 0, z);
	});
}
