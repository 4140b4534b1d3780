package gemm

import (
	"fmt"
	"unsafe"

	"anneal/device/cpu/isa"
	"anneal/tensor"
)

// RowStep and ColStep are the granularity of Micro.Mul on every tier: it computes rows in fours and columns in 32s, so
// buffers are laid out for sizes rounded up to these, once for all tiers.
const (
	RowStep = 4
	ColStep = 32
)

// A kernel computes one tile of tile.mr or RowStep rows and ColStep columns:
//
//	c[i·ldc+j] = Σ_p a(i,p) · b[p·ldb+j], added to c if add is not 0
//
// where a(i,p) is a[i·lda+p] for kernels named rows and a[p·lda+i] for those named cols. Strides count elements.
//
// Meanwhile a kernel asks for memory that will be packed soon: every 4 steps along k, the cache lines at next and at later,
// which then move by step and stride bytes. These are hints: any address is allowed, and the portable kernels ignore them.
type kernel[E tensor.Number] func(c *E, ldc int, a *E, lda int, b *E, ldb int, k, add int, next, later uintptr, step, stride int)

// A tile is the set of kernels of a tier: the main ones, mr rows high, and those for the RowStep rows that are left over.
type tile[E tensor.Number] struct {
	mr, pitch                int // rows of the main kernels, and words between rows of a panel of a
	rows, cols, rows4, cols4 kernel[E]
}

// A Micro multiplies FP32 blocks that are in cache, without packing, threads or allocation: the part of a matrix product
// that a fused kernel such as attention builds on. The zero Micro is not usable; MicroFor makes one. It has no state.
type Micro struct {
	// MR and NR are the rows and columns of the inner tile. Blocks whose rows are a multiple of MR run fastest; other
	// multiples of RowStep are nearly as fast.
	MR, NR int

	tile tile[float32]
	pack packer[float32]
}

// MicroFor returns the FP32 kernels of a tier.
func MicroFor(t isa.Tier) Micro {
	k := f32Tile(t)
	return Micro{MR: k.mr, NR: ColStep, tile: k, pack: f32Packer(t)}
}

// Mul computes c = a·b, or c += a·b with add, for m×n×k elements:
//
//	c[i·ldc+j] (+)= Σ_p a[i·lda+p] · b[p·ldb+j]     0 ≤ i < m, 0 ≤ j < n, 0 ≤ p < k
//
// m is rounded up to a multiple of RowStep and n to one of ColStep; a, b and c must hold the rows and columns this adds,
// which are computed from whatever is there (rows and columns are independent, so they disturb nothing). k is exact, and 0 is
// allowed. Sums run over p in order, the same for every block size; c must not overlap a or b. Slices that are too short panic.
//
// A call should stay below about 100 µs (10 MFLOP), because the kernels cannot be preempted; each tile is one call of a kernel.
func (u *Micro) Mul(c []float32, ldc int, a []float32, lda int, b []float32, ldb int, m, n, k int, add bool) {
	m, n = roundUp(m, RowStep), roundUp(n, ColStep)
	check(c, ldc, m, n)
	check(a, lda, m, k)
	check(b, ldb, k, n)
	u.mul(u.tile.rows, u.tile.rows4, lda, c, ldc, a, lda, b, ldb, m, n, k, add)
}

// MulT is Mul with a read transposed: c[i·ldc+j] (+)= Σ_p a[p·lda+i] · b[p·ldb+j].
func (u *Micro) MulT(c []float32, ldc int, a []float32, lda int, b []float32, ldb int, m, n, k int, add bool) {
	m, n = roundUp(m, RowStep), roundUp(n, ColStep)
	check(c, ldc, m, n)
	check(a, lda, k, m)
	check(b, ldb, k, n)
	u.mul(u.tile.cols, u.tile.cols4, 1, c, ldc, a, lda, b, ldb, m, n, k, add)
}

func (u *Micro) mul(main, last kernel[float32], stepA int, c []float32, ldc int, a []float32, lda int, b []float32, ldb int, m, n, k int, add bool) {
	flag := 0
	if add {
		flag = 1
	}
	if k == 0 { // a and b may be empty: let the kernels, which read nothing, have addresses
		a, b, stepA = c, c, 0
	}
	here := uintptr(unsafe.Pointer(unsafe.SliceData(c))) // nothing to fetch ahead, but an unmapped address would cost time
	for j := 0; j < n; j += ColStep {
		i := 0
		for ; i+u.tile.mr <= m; i += u.tile.mr {
			main(&c[i*ldc+j], ldc, &a[i*stepA], lda, &b[j], ldb, k, flag, here, here, 0, 0)
		}
		for ; i < m; i += RowStep {
			last(&c[i*ldc+j], ldc, &a[i*stepA], lda, &b[j], ldb, k, flag, here, here, 0, 0)
		}
	}
}

// check panics if s does not hold rows of cols elements at the given stride.
func check[E any](s []E, stride, rows, cols int) {
	if rows > 0 && (stride < cols && rows > 1 || (rows-1)*stride+cols > len(s)) {
		panic(fmt.Sprintf("gemm: block of %d×%d at stride %d in %d elements", rows, cols, stride, len(s)))
	}
}

// Widen copies rows×cols elements, row by row, to FP32: dst[i·ldd+j] = src[i·lds+j].
func (u *Micro) Widen(dst []float32, ldd int, src []tensor.BFloat16, lds, rows, cols int) {
	if rows == 0 || cols == 0 {
		return
	}
	check(dst, ldd, rows, cols)
	check(src, lds, rows, cols)
	u.pack.copyRows(&dst[0], ldd, fromBF16(src, lds), rows, cols)
}

// WidenT copies rows×cols elements of src transposed, to FP32: dst[j·ldd+i] = src[i·lds+j]. It turns keys [T, E] into the b of
// q·kᵀ, [E, T].
func (u *Micro) WidenT(dst []float32, ldd int, src []tensor.BFloat16, lds, rows, cols int) {
	if rows == 0 || cols == 0 {
		return
	}
	check(dst, ldd, cols, rows)
	check(src, lds, rows, cols)
	u.pack.transpose(&dst[0], ldd, fromBF16(src, lds), rows, cols)
}

// Transpose copies rows×cols elements transposed: dst[j·ldd+i] = src[i·lds+j]. dst and src must not overlap.
func (u *Micro) Transpose(dst []float32, ldd int, src []float32, lds, rows, cols int) {
	if rows == 0 || cols == 0 {
		return
	}
	check(dst, ldd, cols, rows)
	check(src, lds, rows, cols)
	u.pack.transpose(&dst[0], ldd, fromF32(src, lds), rows, cols)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
