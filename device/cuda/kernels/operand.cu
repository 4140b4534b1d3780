// Operands of matrix products, of storage S, in the format T that they are multiplied in.
#ifndef S
#define S T
#define R T
#endif

// A tf32 is rounded to 10 bits behind the point, ties away from zero.
struct tf32 { float value; };
DEVICE float widen(tf32 x) { return x.value; }
DEVICE void narrow(tf32 &to, float x) {
	u32 u = __float_as_uint(x);
	to.value = __uint_as_float((u & 0x7f800000u) == 0x7f800000u ? u : (u + 0x1000u) & ~0x1fffu);
}

// operand writes n elements of type S, rounded to R, as T: sizeof(S) + sizeof(T) bytes each. A thread takes four neighbours at a time.
DEVICE T to_operand(S x) { return rounded<T>(widen(rounded<R>(widen(x)))); }

KERNEL operand(T *to, const S *from, i64 n) {
	i64 i = 4 * global_thread();
	bool whole = (reinterpret_cast<u64>(from) & (4 * sizeof(S) - 1)) == 0;
	for (; i < n; i += 4 * grid_threads()) {
		if (whole && i + 4 <= n) {
			vec<S, 4> x = load_vec<S, 4>(from + i);
			vec<T, 4> y;
			for (int j = 0; j < 4; j++) y.v[j] = to_operand(x.v[j]);
			store_vec<T, 4>(to + i, y);
		} else {
			for (i64 j = i; j < i + 4 && j < n; j++) to[j] = to_operand(from[j]);
		}
	}
}
