// Values of a table by token, added to the value heads of qkv. T stores qkv and its gradient, S the table. A block has a token; its
// values are `width` elements from column `first` of `cols`.

// add_values adds weight·table[ids] to the values. It moves, per element, those of qkv in and out and of the table in. An id that is
// no row of the table gives NaN.
KERNEL add_values(T *qkv, const S *table, const A *weight, const int *ids, i64 rows, i64 cols, i64 first, i64 width) {
	T *values = qkv + blockIdx.x * cols + first;
	const i64 id = ids[blockIdx.x];
	const bool known = id >= 0 && id < rows;
	const A w = *weight;
	A v[pack], t[pack];
	for (i64 c = threadIdx.x * pack; c < width; c += blockDim.x * pack) {
		load_pack(v, values + c, width - c);
		load_pack(t, table + (known ? id * width + c : 0), known ? width - c : 0, infinity(A(0)) * 0);
		for (int i = 0; i < pack; i++) v[i] += w * t[i];
		store_pack(values + c, v, width - c);
	}
}

// dot_values writes the products dv·table[ids] of the tokens to dots: it moves, per element, those of the gradient and the table in. An id
// that is no row counts as a row of zeros.
KERNEL dot_values(double *dots, const T *dqkv, const S *table, const int *ids, i64 rows, i64 cols, i64 first, i64 width) {
	const T *values = dqkv + blockIdx.x * cols + first;
	const i64 id = ids[blockIdx.x];
	const bool known = id >= 0 && id < rows;
	A v[pack], t[pack], sum = 0;
	for (i64 c = threadIdx.x * pack; c < width; c += blockDim.x * pack) {
		load_pack(v, values + c, width - c);
		load_pack(t, table + (known ? id * width + c : 0), known ? width - c : 0);
		for (int i = 0; i < pack; i++) sum += v[i] * t[i];
	}
	const double dot = block_sum((double)sum);
	if (threadIdx.x == 0) dots[blockIdx.x] = dot;
}

// add_dots adds the sum of n products to the gradient of the weight, in one block.
KERNEL add_dots(A *dweight, const double *dots, i64 n) {
	double sum = 0;
	for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += dots[i];
	sum = block_sum(sum);
	if (threadIdx.x == 0) *dweight += (A)sum;
}
