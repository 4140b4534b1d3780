// Numbers of a whole tensor, in two steps: of stretches of it, one to a block, then of those. Sums are of double. The first step reads
// its tensor once.

const i64 stretch = 1 << 14; // device.Stretch

// larger returns the larger of magnitudes; NaN, once met, stays.
template <class B> DEVICE B larger(B m, B x) { return x > m || x != x ? x : m; }

// block_larger is to larger what block_sum is to adding.
template <class B> DEVICE B block_larger(B x) {
	__shared__ B part[32];
	for (int d = 16; d > 0; d >>= 1) x = larger(x, __shfl_xor_sync(all_lanes, x, d));
	if (lane() == 0) part[warp()] = x;
	__syncthreads();
	x = lane() < (int)(blockDim.x >> 5) ? part[lane()] : B(0);
	for (int d = 16; d > 0; d >>= 1) x = larger(x, __shfl_xor_sync(all_lanes, x, d));
	return x;
}

// The first three kernels write number b of parts in block b.

KERNEL sum(double *parts, const T *t, i64 n) {
	const i64 from = blockIdx.x * stretch, to = from + stretch < n ? from + stretch : n;
	A v[pack];
	double s = 0;
	for (i64 i = from + threadIdx.x * pack; i < to; i += blockDim.x * pack) {
		load_pack(v, t + i, to - i);
		for (int k = 0; k < pack; k++) s += v[k];
	}
	s = block_sum(s);
	if (threadIdx.x == 0) parts[blockIdx.x] = s;
}

KERNEL sum_squares(double *parts, const T *t, i64 n) {
	const i64 from = blockIdx.x * stretch, to = from + stretch < n ? from + stretch : n;
	A v[pack];
	double s = 0;
	for (i64 i = from + threadIdx.x * pack; i < to; i += blockDim.x * pack) {
		load_pack(v, t + i, to - i);
		for (int k = 0; k < pack; k++) s += (double)v[k] * v[k];
	}
	s = block_sum(s);
	if (threadIdx.x == 0) parts[blockIdx.x] = s;
}

KERNEL max_abs(double *parts, const T *t, i64 n) {
	const i64 from = blockIdx.x * stretch, to = from + stretch < n ? from + stretch : n;
	A v[pack], m = 0;
	for (i64 i = from + threadIdx.x * pack; i < to; i += blockDim.x * pack) {
		load_pack(v, t + i, to - i);
		for (int k = 0; k < pack; k++) m = larger(m, abs_of(v[k]));
	}
	m = block_larger(m);
	if (threadIdx.x == 0) parts[blockIdx.x] = m;
}

KERNEL join_sums(double *answer, const double *parts, i64 n) {
	double s = 0;
	for (i64 i = threadIdx.x; i < n; i += blockDim.x) s += parts[i];
	s = block_sum(s);
	if (threadIdx.x == 0) *answer = s;
}

KERNEL join_max(double *answer, const double *parts, i64 n) {
	double m = 0;
	for (i64 i = threadIdx.x; i < n; i += blockDim.x) m = larger(m, parts[i]);
	m = block_larger(m);
	if (threadIdx.x == 0) *answer = m;
}
