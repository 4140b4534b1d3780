// softcap is x ← limit·tanh(x/limit) in place (Gemma 2, arXiv 2408.00118), a pack of n elements to a thread. It moves, per element, 1 in
// and 1 out.
KERNEL softcap(T *x, i64 n, A limit) {
	const i64 at = global_thread() * pack;
	A v[pack];
	if (at >= n) return;
	load_pack(v, x + at, n - at);
	for (int i = 0; i < pack; i++) v[i] = limit * tanh_of(v[i] / limit);
	store_pack(x + at, v, n - at);
}
