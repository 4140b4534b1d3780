// rope rotates the query and key heads of one row of qkv [rows, stride] in place, a pack of pairs to a thread (Su et al. 2021). sign is
// −1 to rotate back. A token whose position is outside the tables [positions, half] becomes NaN. It moves, per element, those of
// qkv in and out.
KERNEL rope(T *qkv, const A *cos, const A *sin, const int *pos, i64 stride, i64 heads, i64 half, i64 positions, i64 interleaved, A sign) {
	T *const row = qkv + blockIdx.x * stride;
	const u32 packs = (u32)((half + pack - 1) / pack);
	const i64 p = pos[blockIdx.x];
	const bool known = p >= 0 && p < positions;
	for (u32 k = threadIdx.x; k < (u32)heads * packs; k += blockDim.x) {
		const i64 c = (i64)(k % packs) * pack, n = half - c;
		T *const head = row + (i64)(k / packs) * 2 * half;
		A c1[pack], s1[pack], a[pack], b[pack];
		load_pack(c1, cos + (known ? p * half + c : 0), known ? n : 0, infinity(A(0)) * 0);
		load_pack(s1, sin + (known ? p * half + c : 0), known ? n : 0, infinity(A(0)) * 0);
		if (interleaved) {
			A lo[pack], hi[pack];
			load_pack(lo, head + 2 * c, 2 * n);
			load_pack(hi, head + 2 * c + pack, 2 * n - pack);
			for (int i = 0; i < pack / 2; i++) {
				a[i] = lo[2 * i]; b[i] = lo[2 * i + 1];
				a[i + pack / 2] = hi[2 * i]; b[i + pack / 2] = hi[2 * i + 1];
			}
		} else {
			load_pack(a, head + c, n);
			load_pack(b, head + half + c, n);
		}
		for (int i = 0; i < pack; i++) {
			const A s = sign * s1[i], x = a[i] * c1[i] - b[i] * s;
			b[i] = a[i] * s + b[i] * c1[i];
			a[i] = x;
		}
		if (interleaved) {
			A lo[pack], hi[pack];
			for (int i = 0; i < pack / 2; i++) {
				lo[2 * i] = a[i]; lo[2 * i + 1] = b[i];
				hi[2 * i] = a[i + pack / 2]; hi[2 * i + 1] = b[i + pack / 2];
			}
			store_pack(head + 2 * c, lo, 2 * n);
			store_pack(head + 2 * c + pack, hi, 2 * n - pack);
		} else {
			store_pack(head + c, a, n);
			store_pack(head + half + c, b, n);
		}
	}
}
