// cross_entropy of one row of logits [rows, cols] to a block. T stores logits, S dlogits.

// A row is cut into packs where elements of memory are multiples of eight, so that rows of any length move by 16 bytes: pack 0 is the few
// before the first such place, `head`.
DEVICE i64 place(i64 k, i64 head) { return k == 0 ? 0 : head + (k - 1) * pack; }
DEVICE i64 length(i64 k, i64 head, i64 cols) { return k == 0 ? (head < cols ? head : cols) : cols - place(k, head); }
DEVICE i64 packs_of(i64 head, i64 cols) { return cols <= head ? 1 : 1 + (cols - head + pack - 1) / pack; }

// draw returns the first label whose cumulative probability exceeds rest, given what a row's exponentials are relative to, their
// top. Tiles of a pack a thread come first, then the pack within the tile, then the label.
DEVICE i64 draw(const T *x, i64 cols, i64 head, A top, double rest) {
	__shared__ A part[1024];
	__shared__ i64 label;
	if (threadIdx.x == 0) label = -1;
	const i64 packs = packs_of(head, cols);
	A p[pack];
	for (i64 base = 0; base < packs; base += blockDim.x) {
		const i64 k = base + threadIdx.x;
		A own = 0;
		if (k < packs) {
			load_pack(p, x + place(k, head), length(k, head, cols), -infinity(A(0)));
			for (int i = 0; i < pack; i++) own += p[i] = exp_fast(p[i] - top);
		}
		const double all = block_sum(own);
		if (all <= rest) {
			rest -= all;
			continue;
		}
		part[threadIdx.x] = own;
		__syncthreads();
		u32 owner = 0; // all threads look for it
		for (u32 t = 0; t < blockDim.x; t++) {
			if (part[t] > 0) owner = t;
			if (part[t] > rest) break;
			rest -= part[t];
		}
		if (threadIdx.x == owner) {
			if (part[owner] <= rest) rest = 0; // rounding has left more than there is
			for (int i = 0; i < pack; i++)
				if (p[i] > 0) {
					label = place(k, head) + i;
					if (p[i] > rest) break;
					rest -= p[i];
				}
		}
		break;
	}
	__syncthreads();
	if (threadIdx.x == 0 && label < 0) { // nor may there be anything left at all: then the most likely label is as good as any
		label = 0;
		for (i64 c = 0; c < cols; c++)
			if (widen(x[c]) == top) {
				label = c;
				break;
			}
	}
	__syncthreads();
	return label;
}

const i64 elsewhere = -101; // the target is another column than these

// cross_entropy finds the largest logit and the sum of exponentials in one pass, and reads the row again, from the cache, for the
// gradient, which may take its place. With given, log Z of more columns than these, it only makes the gradient. targets are replaced by
// drawn labels where `drawn` is not 0. A target that is no column makes the loss NaN, unless it is elsewhere. It moves, per element, that
// of logits in and that of dlogits out.
KERNEL __launch_bounds__(1024) cross_entropy(A *loss, S *dlogits, A *log_z, A *behind, const A *given, const T *logits, int *targets, i64 cols,
	double softcap, double z_loss, double factor, i64 drawn, u64 key, u64 step, u64 purpose, u64 first) {
	const i64 row = blockIdx.x;
	const T *const x = logits + row * cols;
	const i64 head = -(i64)(reinterpret_cast<u64>(x) / sizeof(T)) & (pack - 1), packs = packs_of(head, cols);
	i64 target = targets[row];
	A v[pack];
	if (target == -100) {
		if (threadIdx.x == 0 && !given) {
			loss[row] = 0;
			if (log_z) log_z[row] = 0;
			if (behind) behind[row] = 0;
		}
		for (int i = 0; i < pack; i++) v[i] = 0;
		for (i64 k = threadIdx.x; dlogits && k < packs; k += blockDim.x)
			store_pack(dlogits + row * cols + place(k, head), v, length(k, head, cols));
		return;
	}

	A top, sum = 0;
	if (given) {
		top = given[row];
		sum = 1;
	} else {
		A most = -largest(A(0));
		for (i64 k = threadIdx.x; k < packs; k += blockDim.x) {
			load_pack(v, x + place(k, head), length(k, head, cols), -infinity(A(0)));
			A m = most;
			for (int i = 0; i < pack; i++) m = v[i] > m ? v[i] : m;
			sum *= exp_fast(most - m);
			most = m;
			for (int i = 0; i < pack; i++) sum += exp_fast(v[i] - m);
		}
		top = block_max(most);
		sum = block_sum(sum * exp_fast(most - top));
	}

	if (drawn) {
		u32 r[4];
		random4(r, key, (u32)step, (u32)purpose, first + row);
		target = draw(x, cols, head, top, (double)(((u64)r[0] << 32 | r[1]) >> 11) * 0x1p-53 * sum);
		if (threadIdx.x == 0) targets[row] = (int)target;
	}
	if (threadIdx.x == 0 && !given) {
		const A outside = target == elsewhere ? A(0) : infinity(A(0)) * 0;
		const A right = target >= 0 && target < cols ? widen(x[target]) : outside, log = log_of(sum);
		loss[row] = log + (top - right);
		if (log_z) log_z[row] = log + top;
		if (behind) behind[row] = top - right;
	}
	if (!dlogits) return;
	__syncthreads(); // the target's logit has been read, which the gradient may overwrite

	const A scale = A(factor) * (1 + 2 * A(z_loss) * (log_of(sum) + top)) / sum, bend = softcap > 0 ? A(1 / (softcap * softcap)) : A(0);
	for (i64 k = threadIdx.x; k < packs; k += blockDim.x) {
		const i64 c = place(k, head), n = length(k, head, cols);
		const int hit = target >= c && target - c < n ? (int)(target - c) : -1;
		load_pack(v, x + c, n, -infinity(A(0)));
		for (int i = 0; i < pack; i++) {
			A p = exp_fast(v[i] - top) * scale;
			if (i == hit) p -= A(factor);
			if (bend > 0) p *= 1 - v[i] * v[i] * bend;
			v[i] = p;
		}
		store_pack(dlogits + row * cols + c, v, n);
	}
}
