package vec

// elu1 computes elu(x) + 1 and its slope: see Table.ELU1.
func (f functions[T]) elu1(dst, slope, x []T) {
	slope, x = slope[:len(dst)], x[:len(dst)]
	for i, v := range x {
		slope[i] = f.exp(min(v, 0))
		dst[i] = max(v, 0) + slope[i]
	}
}
