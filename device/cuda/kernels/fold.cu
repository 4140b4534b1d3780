// fold writes the sum of count terms, at most 16, to dst, from left to right; it begins with the sum of those before, unless that is
// null. dst may be a term. It moves, per element, one per term in and 1 out.
KERNEL fold(T *dst, const T *before, i64 n, i64 count, const S *t0, const S *t1, const S *t2, const S *t3, const S *t4, const S *t5,
	const S *t6, const S *t7, const S *t8, const S *t9, const S *t10, const S *t11, const S *t12, const S *t13, const S *t14, const S *t15) {
	const S *const terms[16] = {t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15};
	const i64 at = global_thread() * pack;
	T sum[pack], v[pack];
	if (at >= n) return;
	if (before)
		load_pack(sum, before + at, n - at);
	else
		load_pack(sum, terms[0] + at, n - at);
#pragma unroll
	for (int k = 0; k < 16; k++) {
		if (k >= count || (k == 0 && !before)) continue;
		load_pack(v, terms[k] + at, n - at);
		for (int i = 0; i < pack; i++) sum[i] += v[i];
	}
	store_pack(dst + at, sum, n - at);
}
