package flash

import (
	"math"
	"slices"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// onPairs returns the primitives that work on pairs of BF16, or skips the test.
func onPairs(t *testing.T) kernels[float32] {
	for _, tier := range isa.Tiers() {
		if k := kernelsBF16(tier); k.pair == 2 {
			return k
		}
	}
	t.Skip("this CPU has no BF16 dot products")
	panic("unreachable")
}

// narrow rounds numbers to BF16, in place.
func narrow(x []float32) []float32 {
	for i, v := range x {
		x[i] = tensor.BF16FromFloat32(v).Float32()
	}
	return x
}

// word returns two BF16 numbers as the bits of one word, the first in the lower half; halves takes them apart.
func word(lo, hi float32) float32 {
	return math.Float32frombits(math.Float32bits(lo)>>16 | math.Float32bits(hi)&0xffff0000)
}

func halves(w float32) (lo, hi float32) {
	return math.Float32frombits(math.Float32bits(w) << 16), math.Float32frombits(math.Float32bits(w) & 0xffff0000)
}

// across and down return the words of x [rows, cols].
func across(x []float32) []float32 {
	w := make([]float32, len(x)/2)
	for i := range w {
		w[i] = word(x[2*i], x[2*i+1])
	}
	return w
}

func down(x []float32, cols, group int) []float32 {
	w := make([]float32, len(x)/2)
	for i := range w {
		at := upper(i, cols, group)
		w[i] = word(x[at], x[at+cols])
	}
	return w
}

// upper returns the number of the first of the two elements, one below the other, in word i of a matrix packed down.
func upper(i, cols, group int) int {
	beside := group / 2 // words of a column
	return (i/beside/cols*group+i%beside*2)*cols + i/beside%cols
}

// within compares a number with one that may have been rounded to the neighbouring BF16.
func within(t *testing.T, what string, got, want float32) {
	t.Helper()
	if d := math.Abs(float64(got - want)); !(d <= math.Abs(float64(want))/128+1e-30) {
		t.Fatalf("%s is %v, in Go %v", what, got, want)
	}
}

func TestMulOfPairsMatchesGo(t *testing.T) {
	k := onPairs(t)
	m, n := 3*k.tileM, k.tileN
	for _, groups := range []int{1, 2, 3, 32} {
		depth := groups * k.group
		a, b := narrow(numbers(m*depth, 1)), narrow(numbers(depth*n, 2))
		at := make([]float32, len(a))
		for i := range m {
			for l := range depth {
				at[l*m+i] = a[i*depth+l]
			}
		}
		for _, add := range []bool{false, true} {
			want := numbers(m*n, 3)
			got, gotT := slices.Clone(want), slices.Clone(want)
			for c := 0; c < n; c += 4 {
				mulGo(want[c:], n, a, depth, 1, b[c:], n, m, depth, add)
			}
			k.mul(got, n, across(a), depth/2, 1, down(b, n, k.group), n, m, depth/2, add)
			k.mul(gotT, n, down(at, m, k.group), 1, m, down(b, n, k.group), n, m, depth/2, add)
			for i := range want {
				if d := math.Abs(float64(got[i] - want[i])); d > 1e-5 || got[i] != gotT[i] {
					t.Fatalf("k %d, add %v: element %d is %v, from a held down %v, in Go %v",
						depth, add, i, got[i], gotT[i], want[i])
				}
			}
		}
	}
}

func TestSoftmaxToPairsMatchesGo(t *testing.T) {
	k := onPairs(t)
	n := k.tileN
	for _, rows := range []int{k.group, 3 * k.group, 64} {
		s, m, l, alpha := numbers(rows*n, 1), numbers(n, 2), numbers(n, 3), make([]float32, n)
		s[0], m[1] = negInf[float32](), lowest[float32]()
		s2, m2, l2, alpha2 := slices.Clone(s), slices.Clone(m), slices.Clone(l), make([]float32, n)
		k.softmax(s, rows, 0.7, m, l, alpha)
		columns(s2, rows, n, func(panel []float32, c int) { softmaxGo(panel, rows, 0.7, m2[c:], l2[c:], alpha2[c:]) })
		near(t, "m", m, m2)
		near(t, "l", l, l2)
		near(t, "alpha", alpha, alpha2)
		for i := range rows / 2 * n {
			at := upper(i, n, k.group)
			lo, hi := halves(s[i])
			within(t, "p of an even row", lo, s2[at])
			within(t, "p of an odd row", hi, s2[at+n])
		}
	}
}

func TestGradToPairsMatchesGo(t *testing.T) {
	k := onPairs(t)
	const rows = 5
	n := k.tileN
	ld := 2 * n
	for _, p := range []int{0, n} { // results lie in the rows of the arguments, at half their column
		s, dp, lse, delta := numbers(rows*ld, 1), numbers(rows*ld, 2), numbers(n, 3), numbers(n, 4)
		s[p], lse[1] = negInf[float32](), -negInf[float32]()
		s2, dp2 := slices.Clone(s), slices.Clone(dp)
		k.grad(s[p/2:], dp[p/2:], s[p:], dp[p:], ld, rows, 0.7, lse, delta)
		for c := 0; c < n; c += 4 {
			gradGo(s2[p+c:], dp2[p+c:], s2[p+c:], dp2[p+c:], ld, rows, 0.7, lse[c:], delta[c:])
		}
		for r := range rows {
			for c := range n / 2 {
				lo, hi := halves(s[r*ld+p/2+c])
				within(t, "p", lo, s2[r*ld+p+2*c])
				within(t, "p", hi, s2[r*ld+p+2*c+1])
				lo, hi = halves(dp[r*ld+p/2+c])
				within(t, "ds", lo, dp2[r*ld+p+2*c])
				within(t, "ds", hi, dp2[r*ld+p+2*c+1])
			}
		}
	}
}

func TestPairsAreMovedAsTheyAre(t *testing.T) {
	k := onPairs(t)
	const rows, ld, stride = 8, 128, 140
	src := make([]tensor.BFloat16, rows*stride)
	for i, v := range numbers(len(src), 1) {
		src[i] = tensor.BF16FromFloat32(v)
	}
	for _, cols := range []int{1, 31, 32, 33, 64, 95, 128} {
		x := make([]float32, rows*ld)
		loadBF16Go(x, ld, src, stride, rows, cols)
		got := make([]float32, rows*ld/2)
		k.loadBF16(got, ld, src, stride, rows, cols)
		same(t, "loadBF16", got, across(x))

		zipped := make([]float32, rows*ld/2)
		k.zip(zipped, ld, got, ld/2, rows, ld)
		same(t, "zip", zipped, down(x, ld, k.group))

		d, want := make([]float32, rows), make([]float32, rows)
		k.dot(d, got, got, ld/2, rows, ld/2)
		dotGo(want, x, x, ld, rows, ld)
		for i := range want {
			if math.Abs(float64(d[i]-want[i])) > 1e-6*float64(1+want[i]) {
				t.Fatalf("dot of %d columns is %v, in Go %v", cols, d[i], want[i])
			}
		}
	}
}

func TestTransposeOfPairsPacksDown(t *testing.T) {
	k := onPairs(t)
	n, cols := k.tileN, 4*k.tileN
	x, turned := narrow(numbers(n*cols, 1)), make([]float32, n*cols)
	for i, v := range x {
		turned[i%cols*n+i/cols] = v
	}
	got := make([]float32, n*cols/2)
	k.transpose(got, across(x), cols/2, cols/2)
	same(t, "transpose", got, down(turned, n, k.group))
}
