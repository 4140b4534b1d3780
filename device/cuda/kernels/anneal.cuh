// What all kernels share: storage types, arithmetic, vectors, sums over a warp and a block, random numbers, and the
// instructions of tensor cores. It needs no header of CUDA's. What the compiler gets is this file, then a line
// "#define NAME VALUE" for each choice that a kernel is made for, then the kernel's file. Every kernel is made for one storage
// type T (float, bf16, f16 or double) and one arithmetic A (double where T is, else float). They are no options of the compiler,
// whose own headers come first and use such names.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

struct alignas(2) bf16 { u16 bits; };
struct alignas(2) f16 { u16 bits; };

#define KERNEL extern "C" __global__ void
#define DEVICE static __device__ __forceinline__

#ifndef EMULATED
// SHARED names the dynamic shared memory of the block, as many bytes as the launch asks for.
#define SHARED(type, name)                                         \
	extern __shared__ __align__(128) u8 anneal_shared[];           \
	type *const name = reinterpret_cast<type *>(anneal_shared)

DEVICE u16 round_bf16(float x) { u16 r; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
DEVICE u16 round_f16(float x) { u16 r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
DEVICE float widen_f16(u16 x) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x)); return r; }

// exp2_fast is 2^x to about 2 units in the last place; numbers below the normal range are 0.
DEVICE float exp2_fast(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }

// A shared_address is a place in shared memory, counted in bytes: what is constant of a sum becomes part of the instruction.
typedef u32 shared_address;
DEVICE shared_address address_of(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// ldmatrix loads four 8×8 matrices of 16-bit elements from shared memory: lane l gives the address of row l%8 of matrix
// l/8, 16 bytes aligned, and receives in r[i] elements (l/4, 2·(l%4)) and the next of matrix i; of its transpose with _trans.
DEVICE void ldmatrix_x4(u32 (&r)[4], shared_address row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
}
DEVICE void ldmatrix_x4_trans(u32 (&r)[4], shared_address row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
		: "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
}

// mma adds the product of a [16, 16] and b [16, 8] to d [16, 8], in FP32. With g = lane/4 and t = lane%4, each register
// holding two neighbours along the inner dimension:
// a[0] = (g, 2t), a[1] = (g+8, 2t), a[2] = (g, 2t+8), a[3] = (g+8, 2t+8); b[0] = (2t, g), b[1] = (2t+8, g);
// d[0], d[1] = (g, 2t), (g, 2t+1); d[2], d[3] = (g+8, 2t), (g+8, 2t+1).
DEVICE void mma(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2], bf16) {
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEVICE void mma(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2], f16) {
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// cp_async16 copies 16 bytes from global to shared memory in the background, or writes zeros unless valid. Copies belong to
// the next commit; cp_async_wait<n> waits for all but the last n commits of this thread.
DEVICE void cp_async16(shared_address to, const void *from, bool valid = true) {
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
		:: "r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
// cp_async8 copies 8 bytes in the same way.
DEVICE void cp_async8(shared_address to, const void *from, bool valid = true) {
	asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
		:: "r"(to), "l"(from), "r"(valid ? 8 : 0) : "memory");
}
DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int n> DEVICE void cp_async_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(n) : "memory"); }
#endif

// widen and narrow convert between storage and arithmetic, rounding to nearest even.
DEVICE float widen(float x) { return x; }
DEVICE double widen(double x) { return x; }
DEVICE float widen(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
DEVICE float widen(f16 x) { return widen_f16(x.bits); }
DEVICE void narrow(float &to, float x) { to = x; }
DEVICE void narrow(float &to, double x) { to = (float)x; }
DEVICE void narrow(double &to, double x) { to = x; }
DEVICE void narrow(bf16 &to, float x) { to.bits = round_bf16(x); }
DEVICE void narrow(f16 &to, float x) { to.bits = round_f16(x); }
template <class S, class B> DEVICE S rounded(B x) { S s; narrow(s, x); return s; }

// pair puts two numbers into one register of a tensor core's operand, the first in the low half.
DEVICE u32 pair(float lo, float hi, bf16) { return (u32)round_bf16(lo) | (u32)round_bf16(hi) << 16; }
DEVICE u32 pair(float lo, float hi, f16) { return (u32)round_f16(lo) | (u32)round_f16(hi) << 16; }

// Arithmetic by type, so that kernels read the same for float and double.
DEVICE float exp_of(float x) { return expf(x); }
DEVICE double exp_of(double x) { return exp(x); }
// exp_fast has a relative error of (|x| + 4)·2⁻²⁴ or so: for what is small beside 1 where x is not near 0.
DEVICE float exp_fast(float x) { return exp2_fast(x * 1.44269504f); }
DEVICE double exp_fast(double x) { return exp(x); }
DEVICE float log_of(float x) { return logf(x); }
DEVICE double log_of(double x) { return log(x); }
DEVICE float sqrt_of(float x) { return sqrtf(x); }
DEVICE double sqrt_of(double x) { return sqrt(x); }
DEVICE float tanh_of(float x) { return tanhf(x); }
DEVICE double tanh_of(double x) { return tanh(x); }
DEVICE float abs_of(float x) { return fabsf(x); }
DEVICE double abs_of(double x) { return fabs(x); }
DEVICE float max_of(float x, float y) { return fmaxf(x, y); }
DEVICE double max_of(double x, double y) { return fmax(x, y); }
DEVICE float min_of(float x, float y) { return fminf(x, y); }
DEVICE double min_of(double x, double y) { return fmin(x, y); }
DEVICE float infinity(float) { return __uint_as_float(0x7f800000u); }
DEVICE double infinity(double) { return __longlong_as_double(0x7ff0000000000000ll); }
DEVICE float largest(float) { return 0x1.fffffep127f; }
DEVICE double largest(double) { return 0x1.fffffffffffffp1023; }

// A vec is n neighbours, moved at once where its address is a multiple of its size: 16 bytes at most.
template <class S, int n> struct alignas(sizeof(S) * n) vec { S v[n]; };
template <class S, int n> DEVICE vec<S, n> load_vec(const S *p) { return *reinterpret_cast<const vec<S, n> *>(p); }
template <class S, int n> DEVICE void store_vec(S *p, const vec<S, n> &x) { *reinterpret_cast<vec<S, n> *>(p) = x; }
DEVICE bool aligned16(const void *p) { return (reinterpret_cast<u64>(p) & 15) == 0; }

// A pack is eight neighbours of a row, what a thread takes of it at a time. Its first n, at most all, move by accesses of 16 bytes if they
// are all and the address is aligned to that, else one by one. Of the others load_pack makes rest, and store_pack nothing.
const int pack = 8;
template <class B, class S> DEVICE void load_pack(B (&x)[pack], const S *p, i64 n, B rest = 0) {
	constexpr int width = sizeof(S) < 4 ? pack : 16 / sizeof(S);
	if (n >= pack && aligned16(p)) {
		for (int i = 0; i < pack; i += width) {
			vec<S, width> part = load_vec<S, width>(p + i);
			for (int k = 0; k < width; k++) x[i + k] = widen(part.v[k]);
		}
		return;
	}
	for (int i = 0; i < pack; i++) x[i] = i < n ? widen(p[i]) : rest;
}
template <class B, class S> DEVICE void store_pack(S *p, const B (&x)[pack], i64 n) {
	constexpr int width = sizeof(S) < 4 ? pack : 16 / sizeof(S);
	if (n >= pack && aligned16(p)) {
		for (int i = 0; i < pack; i += width) {
			vec<S, width> part;
			for (int k = 0; k < width; k++) narrow(part.v[k], x[i + k]);
			store_vec(p + i, part);
		}
		return;
	}
	for (int i = 0; i < pack; i++)
		if (i < n) narrow(p[i], x[i]);
}

const u32 all_lanes = 0xffffffffu;
DEVICE int lane() { return (int)(threadIdx.x & 31); }
DEVICE int warp() { return (int)(threadIdx.x >> 5); }

// Sums and maxima over a warp or a one-dimensional block go by one tree, and every thread receives them. The block's threads
// are a multiple of 32, and all of them call. max_of drops NaN.
template <class B> DEVICE B warp_sum(B x) {
	for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(all_lanes, x, d);
	return x;
}
template <class B> DEVICE B warp_max(B x) {
	for (int d = 16; d > 0; d >>= 1) x = max_of(x, __shfl_xor_sync(all_lanes, x, d));
	return x;
}
template <class B> DEVICE B block_sum(B x) {
	__shared__ B part[32];
	x = warp_sum(x);
	if (blockDim.x <= 32) return x;
	__syncthreads(); // part may still be read from a call before
	if (lane() == 0) part[warp()] = x;
	__syncthreads();
	return warp_sum(lane() < (int)(blockDim.x >> 5) ? part[lane()] : B(0));
}
template <class B> DEVICE B block_max(B x) {
	__shared__ B part[32];
	x = warp_max(x);
	if (blockDim.x <= 32) return x;
	__syncthreads();
	if (lane() == 0) part[warp()] = x;
	__syncthreads();
	return warp_max(lane() < (int)(blockDim.x >> 5) ? part[lane()] : -infinity(B(0)));
}

// random4 is block index of the stream with this key, step and purpose: Philox4x32-10, the numbers of tensor.RNG.
DEVICE void random4(u32 (&c)[4], u64 key, u32 step, u32 purpose, u64 index) {
	u32 k0 = (u32)key, k1 = (u32)(key >> 32);
	c[0] = (u32)index; c[1] = (u32)(index >> 32); c[2] = step; c[3] = purpose;
	for (int round = 0; round < 10; round++) {
		u32 h0 = __umulhi(c[0], 0xd2511f53u), l0 = c[0] * 0xd2511f53u;
		u32 h1 = __umulhi(c[2], 0xcd9e8d57u), l1 = c[2] * 0xcd9e8d57u;
		c[0] = h1 ^ c[1] ^ k0; c[1] = l1;
		c[2] = h0 ^ c[3] ^ k1; c[3] = l0;
		k0 += 0x9e3779b9u; k1 += 0xbb67ae85u;
	}
}

// global_thread is the number of this thread in a one-dimensional grid, and grid_threads how many there are: loops over
// elements go from one in steps of the other.
DEVICE i64 global_thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE i64 grid_threads() { return (i64)gridDim.x * blockDim.x; }
