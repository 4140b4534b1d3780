// CUDA C++ for an ordinary compiler: what kernels may use of the language, on the emulated card. The instructions that
// kernels/anneal.cuh has as PTX are C++ here, with the same arguments.
#pragma once
#define EMULATED 1

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "machine.h"

static Machine *machine;

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __constant__ static const
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define threadIdx (machine->thread)
#define blockIdx (machine->block)
#define blockDim (machine->blockSize)
#define gridDim (machine->gridSize)
#define SHARED(type, name) type *const name = reinterpret_cast<type *>(machine->shared)

#define __syncthreads() machine->sync(__LINE__)
#define __syncwarp(...) machine->exchange(0xffffffffu, nullptr, 0, __LINE__)
#define __threadfence() ((void)0)
#define __threadfence_block() ((void)0)

struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

template <class S> static inline S cast_bits(const void *p) { S s; memcpy(&s, p, sizeof s); return s; }
static inline unsigned __float_as_uint(float x) { return cast_bits<unsigned>(&x); }
static inline int __float_as_int(float x) { return cast_bits<int>(&x); }
static inline float __uint_as_float(unsigned x) { return cast_bits<float>(&x); }
static inline float __int_as_float(int x) { return cast_bits<float>(&x); }
static inline double __longlong_as_double(long long x) { return cast_bits<double>(&x); }
static inline long long __double_as_longlong(double x) { return cast_bits<long long>(&x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
#define __expf expf // names that libc has taken
#define __logf logf
static inline float __frcp_rn(float x) { return 1 / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
template <class S> static inline S __ldg(const S *p) { return *p; }
template <class S> static inline S __ldcs(const S *p) { return *p; }
template <class S> static inline void __stcs(S *p, S x) { *p = x; }
template <class S> static inline S min(S a, S b) { return b < a ? b : a; }
template <class S> static inline S max(S a, S b) { return a < b ? b : a; }
static inline long long min(long long a, int b) { return min(a, (long long)b); }
static inline long long min(int a, long long b) { return min((long long)a, b); }
static inline long long max(long long a, int b) { return max(a, (long long)b); }
static inline long long max(int a, long long b) { return max((long long)a, b); }

// One thread runs at a time, so that atomic operations are plain ones.
template <class S> static inline S atomicAdd(S *p, S x) { S old = *p; *p = old + x; return old; }
template <class S> static inline S atomicMax(S *p, S x) { S old = *p; *p = old < x ? x : old; return old; }
template <class S> static inline S atomicMin(S *p, S x) { S old = *p; *p = x < old ? x : old; return old; }
template <class S> static inline S atomicExch(S *p, S x) { S old = *p; *p = x; return old; }
template <class S> static inline S atomicCAS(S *p, S want, S x) { S old = *p; if (old == want) *p = x; return old; }
template <class S> static inline S atomicOr(S *p, S x) { S old = *p; *p = old | x; return old; }

static inline int this_lane() { return (int)(threadIdx.x & 31); } // blocks are one-dimensional where warps matter
template <class S> static inline S shuffled(unsigned mask, S x, int from, int line) {
	static_assert(sizeof(S) <= 64, "too large to shuffle");
	return cast_bits<S>(machine->exchange(mask, &x, sizeof x, line)[from & 31]);
}
#define __shfl_sync(mask, x, from) shuffled(mask, x, from, __LINE__)
#define __shfl_xor_sync(mask, x, d) shuffled(mask, x, this_lane() ^ (d), __LINE__)
#define __shfl_down_sync(mask, x, d) shuffled(mask, x, this_lane() + (int)(d) < 32 ? this_lane() + (int)(d) : this_lane(), __LINE__)
#define __shfl_up_sync(mask, x, d) shuffled(mask, x, this_lane() >= (int)(d) ? this_lane() - (int)(d) : this_lane(), __LINE__)
static inline unsigned ballot(unsigned mask, bool x, int line) {
	char(*all)[64] = machine->exchange(mask, &x, 1, line);
	unsigned r = 0;
	for (int i = 0; i < 32; i++)
		if (mask >> i & 1 && all[i][0]) r |= 1u << i;
	return r;
}
#define __ballot_sync(mask, x) ballot(mask, x, __LINE__)
#define __any_sync(mask, x) (ballot(mask, x, __LINE__) != 0)
#define __all_sync(mask, x) (ballot(mask, !(x), __LINE__) == 0)

static inline unsigned short round_bf16(float x) {
	unsigned u = __float_as_uint(x);
	if (x != x) return (unsigned short)(u >> 16 | 0x40);
	return (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static inline unsigned short round_f16(float x) { _Float16 h = (_Float16)x; return cast_bits<unsigned short>(&h); }
static inline float widen_f16(unsigned short x) { return (float)cast_bits<_Float16>(&x); }
static inline float exp2_fast(float x) { float y = exp2f(x); return y < 1.17549435e-38f ? 0 : y; }

typedef char *shared_address;
static inline shared_address address_of(const void *p) { return (char *)p; }

static inline void ldmatrix(unsigned (&r)[4], shared_address row, bool transposed, int line) {
	if (reinterpret_cast<unsigned long>(row) & 15) __builtin_trap(); // as the card would
	char(*all)[64] = machine->exchange(0xffffffffu, &row, sizeof row, line);
	int l = this_lane();
	for (int i = 0; i < 4; i++) {
		const unsigned short *m[8];
		unsigned banks = 0; // groups of 4 that the rows lie in: two rows in one would be read one after the other
		for (int j = 0; j < 8; j++) {
			m[j] = cast_bits<const unsigned short *>(all[8 * i + j]);
			banks |= 1 << (reinterpret_cast<unsigned long>(m[j]) / 16 & 7);
		}
		if (banks != 0xff) __builtin_trap(); // no kernel here is meant to be slow
		int a = l / 4, b = l % 4 * 2;
		r[i] = transposed ? m[b][a] | (unsigned)m[b + 1][a] << 16 : m[a][b] | (unsigned)m[a][b + 1] << 16;
	}
	machine->exchange(0xffffffffu, nullptr, 0, line); // nobody writes to the rows before all have read
}
#define ldmatrix_x4(r, row) ldmatrix(r, row, false, __LINE__)
#define ldmatrix_x4_trans(r, row) ldmatrix(r, row, true, __LINE__)

template <class W> static inline void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], W wide, int line) {
	unsigned mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
	char(*all)[64] = machine->exchange(0xffffffffu, mine, sizeof mine, line);
	int g = this_lane() / 4, t = this_lane() % 4;
	for (int i = 0; i < 4; i++) { // d[i] is row g + 8·(i/2), column 2t + i%2
		float sum = 0;
		int col = 2 * t + i % 2;
		for (int k = 0; k < 16; k++) { // of a: register (k/8)·2 + i/2 of lane 4g + k%8/2; of b: register k/8 of lane 4·col + k%8/2
			unsigned x = cast_bits<unsigned>(all[4 * g + k % 8 / 2] + 4 * (k / 8 * 2 + i / 2)) >> 16 * (k % 2);
			unsigned y = cast_bits<unsigned>(all[4 * col + k % 8 / 2] + 4 * (4 + k / 8)) >> 16 * (k % 2);
			sum += wide((unsigned short)x) * wide((unsigned short)y);
		}
		d[i] += sum;
	}
}
struct bf16;
struct f16;
static inline float widen_bf16(unsigned short x) { return __uint_as_float((unsigned)x << 16); }
static inline auto widener(const bf16 *) { return widen_bf16; }
static inline auto widener(const f16 *) { return widen_f16; }
template <class S> static inline void mma_of(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], S, int line) {
	multiply(d, a, b, widener((const S *)nullptr), line);
}
#define mma(d, a, b, kind) mma_of(d, a, b, kind, __LINE__)

// Copies in the background may be done at once or not before they are waited for: the destination is garbage until then.
struct Copy { void *to; const void *from; int size; };
static std::vector<std::vector<Copy>> copies[1024]; // of each thread: commits, the last of them open
static inline void cp_async(void *to, const void *from, bool valid, int size) {
	if ((reinterpret_cast<unsigned long>(to) | (valid ? reinterpret_cast<unsigned long>(from) : 0)) & (size - 1)) __builtin_trap();
	auto &mine = copies[threadIdx.x];
	if (mine.empty()) mine.emplace_back();
	mine.back().push_back({to, valid ? from : nullptr, size});
	memset(to, 0xff, size);
}
static inline void cp_async16(shared_address to, const void *from, bool valid = true) { cp_async(to, from, valid, 16); }
static inline void cp_async8(shared_address to, const void *from, bool valid = true) { cp_async(to, from, valid, 8); }
static inline void cp_async_commit() { copies[threadIdx.x].emplace_back(); }
template <int n> static inline void cp_async_wait() {
	auto &mine = copies[threadIdx.x];
	for (; mine.size() > n + 1; mine.erase(mine.begin()))
		for (const Copy &c : mine[0]) {
			if (c.from) memcpy(c.to, c.from, c.size);
			else memset(c.to, 0, c.size);
		}
}

// Kernels of a module, for the driver.
template <class... P> struct Entry {
	static constexpr int count = sizeof...(P);
	static constexpr int sizes[sizeof...(P) + 1] = {(int)sizeof(P)..., 0};
	template <size_t... i> static void call(void (*f)(P...), void **p, std::index_sequence<i...>) { f(*(P *)p[i]...); }
};
template <class... P> static Entry<P...> entry_of(void (*)(P...)) { return {}; }
template <class... P> static void call_kernel(void (*f)(P...), void **p) { Entry<P...>::call(f, p, std::index_sequence_for<P...>{}); }
#define KERNEL_ENTRY(name) {#name, [](void **p) { call_kernel(name, p); }, decltype(entry_of(name))::count, decltype(entry_of(name))::sizes},
