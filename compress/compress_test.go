package compress

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	_ "anneal/internal/torture"
)

func normals(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	list := make([]float32, n)
	for i := range list {
		list[i] = float32(r.NormFloat64())
	}
	return list
}

// Rounded weights are numbers of their group's grid, off by at most half a step, and the largest of a group stays.
func TestNearestStaysOnItsGrid(t *testing.T) {
	const rows, cols = 5, 37
	for bits := 2; bits <= 8; bits++ {
		for _, group := range []int{1, 8, 16, 64} {
			g, w := Grid{bits, group}, normals(1, rows*cols)
			was := slices.Clone(w)
			g.Nearest(w, cols)
			for r := range rows {
				for from := 0; from < cols; from += group {
					to := min(from+group, cols)
					a, b := was[r*cols+from:r*cols+to], w[r*cols+from:r*cols+to]
					scale := g.scale(widened(nil, a))
					for i := range a {
						n := float64(b[i]) / scale
						if math.Abs(n-math.Round(n)) > 1e-4 || math.Abs(n) > g.levels()+1e-4 ||
							math.Abs(float64(a[i]-b[i])) > scale*0.5001 {
							t.Fatalf("%+v: %g became %g, steps of %g", g, a[i], b[i], scale)
						}
						if math.Abs(float64(a[i])) > scale*g.levels()*0.999999 && math.Abs(float64(a[i]-b[i])) > 1e-6 {
							t.Fatalf("%+v: the largest, %g, became %g", g, a[i], b[i])
						}
					}
				}
			}
		}
	}
	zeros := make([]float32, 8)
	Grid{4, 4}.Nearest(zeros, 8)
	if slices.Max(zeros) != 0 {
		t.Error("zeros do not stay zeros")
	}
}

// Every group has a scale of 16 bits: also the last one of a row, however short, and a row that is one group.
func TestScalesTakeBits(t *testing.T) {
	for _, c := range []struct {
		group, cols int
		want        int64 // of 3 rows in 4 bits
	}{{32, 64, 3 * 64 * 9 / 2}, {32, 65, 3 * (65*4 + 3*16)}, {1 << 30, 64, 3 * (64*4 + 16)}, {64, 0, 0}} {
		if got := (Grid{4, c.group}).MatrixBits(3, c.cols); got != c.want {
			t.Errorf("groups of %d in rows of %d: %d bits, want %d", c.group, c.cols, got, c.want)
		}
	}
}

// inputs returns Σ x·xᵀ of inputs of which some depend on others, and the inputs [n, cols].
func inputs(cols, n int) (h []float64, x []float32) {
	base := normals(7, n*cols)
	x = slices.Clone(base)
	for i := range n {
		for j := 1; j < cols; j++ {
			x[i*cols+j] = 0.9*x[i*cols+j-1] + 0.4*base[i*cols+j]
		}
	}
	h = make([]float64, cols*cols)
	for i := range n {
		for a := range cols {
			for b := range cols {
				h[a*cols+b] += float64(x[i*cols+a]) * float64(x[i*cols+b])
			}
		}
	}
	return h, x
}

// U is upper triangular, and Uᵀ·U is the inverse of the damped h.
func TestUpperIsTheRootOfTheInverse(t *testing.T) {
	const n = 23
	h, _ := inputs(n, 200)
	damped, mean := slices.Clone(h), 0.0
	for i := range n {
		mean += h[i*n+i] / n
	}
	for i := range n {
		damped[i*n+i] += damping * mean
	}
	u, err := upper(slices.Clone(h), n)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		for j := range n {
			sum := 0.0 // of damped·Uᵀ·U
			for k := range n {
				inverse := 0.0
				for l := range n {
					inverse += u[l*n+k] * u[l*n+j]
				}
				sum += damped[i*n+k] * inverse
			}
			want := 0.0
			if i == j {
				want = 1
			}
			if math.Abs(sum-want) > 1e-9 || j < i && u[i*n+j] != 0 {
				t.Fatalf("element %d, %d of the product is %g, of U %g", i, j, sum, u[i*n+j])
			}
		}
	}
	for _, bad := range [][]float64{make([]float64, 4), {1, math.NaN(), math.NaN(), 1}, {math.Inf(1), 0, 0, 1}} {
		if _, err := upper(bad, 2); err == nil {
			t.Errorf("%v has a root", bad)
		}
	}
}

// The products with the inputs change less with GPTQ than with plain rounding, at every number of bits; with inputs
// that do not depend on each other both round alike.
func TestGPTQChangesProductsLess(t *testing.T) {
	const rows, cols, n = 16, 64, 400
	h, x := inputs(cols, n)
	w := normals(3, rows*cols)
	miss := func(q []float32) (sum float64) {
		for i := range n {
			for r := range rows {
				d := 0.0
				for c := range cols {
					d += float64(q[r*cols+c]-w[r*cols+c]) * float64(x[i*cols+c])
				}
				sum += d * d
			}
		}
		return sum
	}
	for _, bits := range []int{2, 3, 4, 8} {
		g := Grid{bits, 32}
		plain, careful := slices.Clone(w), slices.Clone(w)
		g.Nearest(plain, cols)
		if err := g.GPTQ(careful, cols, slices.Clone(h)); err != nil {
			t.Fatal(err)
		}
		if a, b := miss(plain), miss(careful); b > 0.7*a {
			t.Errorf("%d bits: the products are off by %.4g with GPTQ, by %.4g without", bits, b, a)
		}
	}
	g, apart := Grid{4, 32}, make([]float64, cols*cols)
	for i := range cols {
		apart[i*cols+i] = float64(1 + i)
	}
	plain, careful := slices.Clone(w), slices.Clone(w)
	g.Nearest(plain, cols)
	if err := g.GPTQ(careful, cols, apart); err != nil || !slices.Equal(plain, careful) {
		t.Errorf("with inputs apart GPTQ differs from plain rounding: %v", err)
	}
}

// What was pruned stays 0 where the rest is rounded with GPTQ, and makes up for it.
func TestGPTQKeepsZeros(t *testing.T) {
	const cols = 32
	h, _ := inputs(cols, 200)
	w := normals(9, 8*cols)
	Of(w, cols, 2, 4)
	q := slices.Clone(w)
	if err := (Grid{4, 32}).GPTQ(q, cols, h); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for i := range w {
		if w[i] == 0 && q[i] != 0 {
			t.Fatalf("weight %d was pruned and became %g", i, q[i])
		}
		if w[i] != q[i] {
			changed++
		}
	}
	if changed < len(w)/4 {
		t.Errorf("%d of %d weights changed", changed, len(w))
	}
}

// Pruning removes exactly the smallest.
func TestPruningRemovesTheSmallest(t *testing.T) {
	w := normals(5, 1000)
	was := slices.Clone(w)
	Magnitude(w, 0.3)
	kept, gone, zeros := float32(math.Inf(1)), float32(0), 0
	for i, x := range w {
		size := float32(math.Abs(float64(was[i])))
		switch {
		case x == 0:
			zeros, gone = zeros+1, max(gone, size)
		case x == was[i]:
			kept = min(kept, size)
		default:
			t.Fatalf("weight %d changed from %g to %g", i, was[i], x)
		}
	}
	if zeros != 300 || gone > kept {
		t.Errorf("%d zeros; the largest of them was %g, the smallest that is left %g", zeros, gone, kept)
	}
	few := []float32{1, -4, 3, 2, 5, 0, -1, 6, 7, 8}
	Of(few, 10, 2, 4)
	if want := []float32{0, -4, 3, 0, 5, 0, 0, 6, 7, 8}; !slices.Equal(few, want) {
		t.Errorf("2 of 4: %v, want %v", few, want)
	}
	Magnitude(few, 0)
	if few[0] != 0 || few[1] != -4 {
		t.Error("a share of 0 changes weights")
	}
}

// Units with the smallest product of norms become 0, all of them and nothing else.
func TestUnitsArePrunedWhole(t *testing.T) {
	const units, wide, d = 6, 2, 5
	up, gate, out := normals(3, units*d), normals(4, units*wide*d), normals(5, d*units*wide)
	for _, u := range []int{1, 4} { // small together, not each matrix alone
		for i := range d {
			up[u*d+i] *= 0.1
			gate[u*wide*d+i] *= 0.1
		}
	}
	for i := range d {
		up[2*d+i] *= 0.001
		for j := range wide {
			out[i*units*wide+2*wide+j] *= 100_000
		}
	}
	was := [][]float32{slices.Clone(up), slices.Clone(gate), slices.Clone(out)}
	if n := Units(units, 0.34, out, units*wide, up, gate); n != 2 {
		t.Errorf("%d units were pruned", n)
	}
	pruned := func(u int) bool { return u == 1 || u == 4 }
	for i, x := range up {
		if want := was[0][i]; pruned(i/d) && x != 0 || !pruned(i/d) && x != want {
			t.Errorf("up, unit %d: %v became %v", i/d, want, x)
		}
	}
	for i, x := range gate {
		if want := was[1][i]; pruned(i/d/wide) && x != 0 || !pruned(i/d/wide) && x != want {
			t.Errorf("gate, unit %d: %v became %v", i/d/wide, want, x)
		}
	}
	for i, x := range out {
		u := i % (units * wide) / wide
		if want := was[2][i]; pruned(u) && x != 0 || !pruned(u) && x != want {
			t.Errorf("out, unit %d: %v became %v", u, want, x)
		}
	}
}

// The smallest percentage is one unit, and less than it is none.
func TestTheSmallestPercentageIsOneUnit(t *testing.T) {
	for units := 1; units <= 50_000; units++ {
		p := SmallestPercent(units)
		if one, less := UnitsOf(units, p/100), UnitsOf(units, (p-1.5e-4)/100); one != 1 || less != 0 {
			t.Fatalf("%v%% of %d units is %d, and a little less is %d", p, units, one, less)
		}
	}
}

// A grid without groups, or weights that are no whole rows, must not loop for ever or write not-a-numbers.
func TestGridsAndMatricesThatCannotBePanic(t *testing.T) {
	w := func() []float32 { return []float32{1, 2, 3, 4} }
	for want, f := range map[string]func(){
		"4 bits in groups of 0":             func() { Grid{Bits: 4}.Nearest(w(), 2) },
		"1 bits in groups of 2":             func() { Grid{Bits: 1, Group: 2}.Nearest(w(), 2) },
		"0 bits":                            func() { Grid{}.MatrixBits(2, 2) },
		"4 weights are not whole rows of 3": func() { Grid{Bits: 4, Group: 2}.Nearest(w(), 3) },
		"4 weights are not whole rows of 0": func() { Of(w(), 0, 2, 4) },
		"2 of every 0 weights":              func() { Of(w(), 4, 2, 0) },
		"a share of 2":                      func() { Magnitude(w(), 2) },
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, want) {
					t.Errorf("%s, want %s", text, want)
				}
			}()
			f()
		}()
	}
	err := Grid{Bits: 4, Group: 2}.GPTQ(w(), 2, nil)
	if err == nil || !strings.Contains(err.Error(), "rows of 2 need 4") {
		t.Errorf("without inputs: %v", err)
	}
}
