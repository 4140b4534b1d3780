// AdamW with moments in 8 bits, numbers of tensor.Dynamic8 by blocks of 256 elements: 16 bytes an element, 10 read and 6
// written, beside 8 for each block.

const int block_size = 256;     // elements that share a scale: device.Block
const int blocks_per_warp = 4;  // so that the tables are read once for 8,192 elements

// A code is 256 numbers in rising order and the middles between them. The numbers from 0 up are zero, zero + 1, … The first middle
// of v's code is 0: a second moment above 0 that became 0 would forget all gradients but the next.
struct code { A numbers[256], middles[256]; };

// nearest returns the code of the number nearest to x in [0, 1], halves towards 0. Each decade's numbers are evenly spaced, so
// that codes are seven lines in x, and towards larger numbers the lines get flatter: the least of them is that of the number's own
// decade. The lines lie lower by ¼, as the middles next to a decade's ends lie up to 0.25 above them; so the whole part of the
// least one is the number's code or the one before.
template <bool with_sign> DEVICE int nearest(A x, const code &c) {
	constexpr int zero = with_sign ? 127 : 0;
	constexpr double lines = with_sign ? 1 : 2; // in the lowest decade
	constexpr double tops[7] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
	A least = 128 * A(lines);
#pragma unroll
	for (int d = 0; d < 7; d++) {
		const double intervals = lines * (1 << d), first = with_sign ? (1 << d) : 2 * (1 << d) - 1;
		least = min_of(least, A(intervals / (0.9 * tops[d])) * x + A(first - intervals / 9 - 0.25));
	}
	const int k = zero + (int)max_of(least, A(0));
	return k < 255 && x > c.middles[k] ? k + 1 : k;
}

// encode returns the code of a number in [−1, 1]. A number without a counterpart of the other sign has its neighbour's.
template <bool with_sign> DEVICE u8 encode(A x, const code &c) {
	const int k = nearest<with_sign>(abs_of(x), c);
	if (with_sign && x < 0) return (u8)(254 - (k < 254 ? k : 254));
	return (u8)k;
}

// inverse returns 1/top; where that is no number that a block can be scaled by, top becomes 0, and with it the block.
DEVICE A inverse(A &top) {
	if (top < A(1.17549435e-38)) {
		top = 0;
		return 0;
	}
	return 1 / top;
}

// A lane has elements 4·lane… of the first half of a block and of the second, as vectors of four.
const int lane_elements = 8;

DEVICE int element(int i) { return (i / 4) * 128 + 4 * lane() + i % 4; }

template <class S> DEVICE void load_lane(S (&x)[lane_elements], const S *from, int n) {
	constexpr int V = sizeof(S) < 8 ? 4 : 2;
	if (n == block_size && aligned16(from)) {
#pragma unroll
		for (int i = 0; i < lane_elements; i += V) {
			const vec<S, V> y = load_vec<S, V>(from + element(i));
#pragma unroll
			for (int j = 0; j < V; j++) x[i + j] = y.v[j];
		}
		return;
	}
#pragma unroll
	for (int i = 0; i < lane_elements; i++) x[i] = element(i) < n ? from[element(i)] : S(0);
}

template <class S> DEVICE void store_lane(S *to, const S (&x)[lane_elements], int n) {
	constexpr int V = sizeof(S) < 8 ? 4 : 2;
	if (n == block_size && aligned16(to)) {
#pragma unroll
		for (int i = 0; i < lane_elements; i += V) {
			vec<S, V> y;
#pragma unroll
			for (int j = 0; j < V; j++) y.v[j] = x[i + j];
			store_vec(to + element(i), y);
		}
		return;
	}
#pragma unroll
	for (int i = 0; i < lane_elements; i++)
		if (element(i) < n) to[element(i)] = x[i];
}

DEVICE void read_code(code &c, const float *numbers) {
	for (int i = threadIdx.x; i < 256; i += blockDim.x) {
		c.numbers[i] = numbers[i];
		c.middles[i] = i < 255 ? (A(numbers[i]) + A(numbers[i + 1])) / 2 : infinity(A(0));
		if (i == 0 && numbers[i] == 0) c.middles[i] = 0;
	}
}

// numbers [2, 256] are those of m's code and of v's. Each warp takes some blocks of elements. Those behind the end of the last block
// are zeros and stay so.
KERNEL adamw8(A *p, const A *g, u8 *m_codes, A *m_tops, u8 *v_codes, A *v_tops, i64 n, const float *numbers,
		A scale, A beta1, A keep1, A beta2, A keep2, A decay, A rate, A correct2, A eps, A floor) {
	__shared__ code m_code, v_code;
	read_code(m_code, numbers);
	read_code(v_code, numbers + 256);
	__syncthreads();
	const i64 first = ((i64)blockIdx.x * (blockDim.x / 32) + warp()) * blocks_per_warp;
	for (i64 block = first; block < first + blocks_per_warp; block++) {
		const i64 from = block * block_size;
		if (from >= n) return;
		const int count = n - from < block_size ? (int)(n - from) : block_size;
		A param[lane_elements], grad[lane_elements];
		u8 mc[lane_elements], vc[lane_elements];
		load_lane(param, p + from, count);
		load_lane(grad, g + from, count);
		load_lane(mc, m_codes + from, count);
		load_lane(vc, v_codes + from, count);
		A m_top = m_tops[block], v_top = v_tops[block];
		A m[lane_elements], v[lane_elements];
		A m_most = 0, v_most = 0;
#pragma unroll
		for (int i = 0; i < lane_elements; i++) {
			const bool inside = element(i) < count;
			const A d = scale * grad[i];
			m[i] = inside ? beta1 * (m_code.numbers[mc[i]] * m_top) + keep1 * d : A(0);
			v[i] = inside ? beta2 * (v_code.numbers[vc[i]] * v_top) + keep2 * d * d : A(0);
			A u = rate * m[i] / (sqrt_of(correct2 * v[i]) + eps);
			if (u * param[i] >= floor) u += decay * param[i];
			param[i] -= u;
			m_most = max_of(m_most, abs_of(m[i]));
			v_most = max_of(v_most, v[i]);
		}
		m_top = warp_max(m_most);
		v_top = warp_max(v_most);
		const A m_scale = inverse(m_top), v_scale = inverse(v_top);
#pragma unroll
		for (int i = 0; i < lane_elements; i++) {
			mc[i] = encode<true>(m[i] * m_scale, m_code);
			vc[i] = encode<false>(v[i] * v_scale, v_code);
		}
		store_lane(p + from, param, count);
		store_lane(m_codes + from, mc, count);
		store_lane(v_codes + from, vc, count);
		if (lane() == 0) {
			m_tops[block] = m_top;
			v_tops[block] = v_top;
		}
	}
}
