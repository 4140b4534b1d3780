package gemm

import "anneal/device"

// Block sizes, in words.
const (
	rowsTN  = 48         // columns of a that are packed side by side in form TN: three cache lines of FP32
	maxB    = 1640 << 10 // packed b; if all K blocks fit, tasks below each other pack them once
	crowded = 32 << 10   // rows a multiple of this many bytes apart map to few lines of the second-level cache
)

// sizes holds the block sizes that differ between kernels, and the costs for cutting tasks. A panel of b, of maxK×panel
// words, and the rows of a tile fit in the first-level cache; the sums of a task's tile, a block of a and a K block of
// b share the second-level cache.
type sizes struct {
	mr    int // rows of the main kernels
	side  int // columns of a that are packed side by side in form TN: rowsTN or mr
	high  int // rows of a that are packed at a time
	panel int // columns of b that are packed side by side: colStep, or those of a register tile
	group int // elements of k in a word: 2 where words are pairs of BF16
	run   int // words along k that lie next to each other where packed columns run down: 2 for BFMMLA, else 1
	maxK  int // depth of a K block, words
	stepK int // divides the depth of a K block, words
	maxN  int // columns of a task
	maxC  int // elements of a task
	costs
}

// strideRows returns the words between packed rows of a: not a power of two, so that rows do not map to the same
// cache lines.
func (z *sizes) strideRows() int { return z.maxK + 16 }

// rowsOfA returns how many rows of a are packed at a time, in form TN whole panels of columns.
func (z *sizes) rowsOfA(form device.Form) int {
	if form == device.TN {
		return max(z.high, z.side)
	}
	return z.high
}

// belowTN returns the words between the first columns of neighbouring tiles of packed a in form TN.
func (z *sizes) belowTN() int {
	if z.side == z.mr {
		return z.mr * z.maxK
	}
	return z.mr * z.run
}

// vectorSizes returns the sizes for kernels that broadcast words of a and multiply them by vectors of b.
func vectorSizes(mr, group int) sizes {
	return sizes{
		mr: mr, group: group, side: rowsTN, high: 36, panel: colStep, run: 1,
		maxK: 192, stepK: 8, maxN: 384, maxC: 528 * 384,
		costs: costs{
			product: 0.0105, rowsA: 0.07, colsA: 0.1, rowsB: 0.24, colsB: 0.15, spill: 0.2, fetch: 0.02, mirror: 1,
			maxL2: 192 << 10,
		},
	}
}

// tileSizes are the sizes for kernels on tiles, whose cuts use other costs.
var tileSizes = sizes{mr: 32, panel: colStep, group: 2, run: 1, maxK: 256, stepK: 16, maxN: 1024, maxC: 1 << 20}

// A cut divides a product: the result into tasks of whole panels (mr rows, colStep columns) of nearly equal size, and
// K into blocks. The blocks of K, which determine the order of every sum, depend only on K. The tasks may depend on
// the number of workers, because the value of an element does not depend on the task that computes it.
type cut struct {
	sizes
	m, n, k          int
	down, across     int  // number of tasks
	depth            int  // of a K block, elements
	deep             int  // of the K blocks of b that strips pack at a time, elements
	rows, cols       int  // panels of the largest task
	keep             bool // all K blocks of a task's b stay packed
	symmetric        bool // tasks above the diagonal are mirrored
	strideB, strideK int  // words between panels of b, and between its K blocks
}

// wanted describes the product for which a cut is chosen.
type wanted struct {
	form      device.Form
	m, n, k   int
	symmetric bool
	plain     bool // strips that read a in place
}

// chosen is a cut and the product for which it was chosen.
type chosen struct {
	wanted
	cut cut
}

// alone is the largest number of multiplications that one worker does sooner than it could share them.
const alone = 1 << 19

// chooseCut sets the cut of the next product. Choosing takes as long as a small product, so recent choices are kept.
func (x *product[E]) chooseCut(w wanted) {
	at := &x.cuts[(w.m+5*w.n+25*w.k+int(w.form))%len(x.cuts)]
	if at.wanted != w {
		workers := len(x.scratch)
		if w.m*w.n*w.k < alone {
			workers = 1
		}
		at.wanted = w
		if x.tile.strip != nil {
			at.cut = chooseStrips(w.form, w.m, w.n, w.k, &x.tile.sizes, w.plain, workers, w.symmetric)
		} else {
			at.cut = choose(w.form, w.m, w.n, w.k, &x.tile.sizes, workers, w.symmetric)
		}
	}
	x.cut = at.cut
}

// Costs in nanoseconds per element on one core of a 3 GHz server, used to choose a cut: of a product; of packing a
// and b by rows and by columns; the extra cost of packing if the packed blocks exceed the second-level cache (maxL2
// words), because they are loaded again; and of mirroring.
type costs struct {
	product, rowsA, colsA, rowsB, colsB, spill, fetch, mirror float64
	maxL2                                                     int
}

// choose returns the fastest cut by these costs. Wide tasks pack a less often, tall ones pack b less often; few tasks
// leave workers idle.
func choose(form device.Form, m, n, k int, z *sizes, workers int, symmetric bool) cut {
	c := cut{m: m, n: n, k: k, sizes: *z, symmetric: symmetric, depth: z.depth(k)}
	costA, costB := z.rowsA, z.colsB
	switch form {
	case device.NT:
		costB = z.rowsB
	case device.TN:
		costA = z.colsA
	}
	panelsM, panelsN := ceil(m, z.mr), ceil(n, colStep)
	best, lowest := c, -1.0
	first := ceil(panelsN, z.maxN/colStep)
	for across := first; across <= min(panelsN, first+16); across++ {
		cols := ceil(panelsN, across)
		first := ceil(panelsM, max(1, z.maxC/(cols*colStep*z.mr)))
		for down := first; down <= min(panelsM, first+8); down++ {
			c.down, c.across, c.rows, c.cols = down, across, ceil(panelsM, down), cols
			c.strideB = (roundUp(ceil(c.depth, z.group), z.stepK) + 1) * colStep
			c.strideK = c.cols * c.strideB
			all := ceil(k, c.depth) * c.strideK
			packs, keeping := costB*float64(n*down), costB
			if all > z.maxL2 {
				keeping += z.spill
			}
			keeping = (keeping*packers(down, across, workers) + z.fetch*float64(down)) * float64(n)
			if c.keep = all <= maxB && keeping < packs; c.keep {
				packs = keeping
			}
			tasks, mirror := down*across, 0.0
			if symmetric {
				tasks = staircase(down, across)
				mirror = z.mirror * float64(m*n) / float64(max(k, 1))
			}
			share := float64(tasks) / float64(down*across)
			cost := (z.product*float64(m*n)+costA*float64(m*across)+packs)*share*c.idle(tasks, workers) +
				mirror*(1-share)
			if lowest < 0 || cost < lowest {
				best, lowest = c, cost
			}
		}
	}
	return best
}

// idle returns the ratio of the time to the time with all workers busy to the end: one worker may have an extra task,
// or a larger last one.
func (c *cut) idle(tasks, workers int) float64 {
	if workers == 1 {
		return 1
	}
	turns := ceil(tasks, workers)
	uneven := float64(c.rows*c.down*c.cols*c.across)/float64(ceil(c.m, c.mr)*ceil(c.n, colStep)) - 1
	return float64(turns*workers) / float64(tasks) * (1 + uneven/float64(turns))
}

// depth returns the size of a K block, in elements.
func (z *sizes) depth(k int) int { return max(1, even(k, z.maxK*z.group, z.stepK*z.group)) }

// staircase returns how many of down×across equal parts of a square contain something on or below its diagonal: the
// sum of ⌈r·across/down⌉ over the rows r.
func staircase(down, across int) int {
	return (down*across + down + across - gcd(down, across)) / 2
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// mirrored reports whether a part is wholly above the diagonal of a symmetric product, so that it is copied instead
// of computed.
func (c *cut) mirrored(t span) bool { return c.symmetric && t.j >= t.i+t.rows }

// packers returns the average number of workers that pack a kept column of b: one, except that all of them work on
// the last columns.
func packers(down, across, workers int) float64 {
	alone := across / workers * workers
	return float64(alone+min(workers, (across-alone)*down)) / float64(across)
}

// A span is the part of the result that a task computes.
type span struct{ i, j, rows, cols int }

// span returns the part of the result of the task in the given column and row.
func (c *cut) span(column, row int) span {
	i0, i1 := part(c.m, c.mr, c.down, row)
	j0, j1 := part(c.n, colStep, c.across, column)
	return span{i0, j0, i1 - i0, j1 - j0}
}

// part returns the range of the i-th of parts of n, in whole panels.
func part(n, panel, parts, i int) (from, to int) {
	panels := ceil(n, panel)
	return panels * i / parts * panel, min(panels*(i+1)/parts*panel, n)
}

// even splits n into the fewest parts of at most limit and returns their size, a multiple of step.
func even(n, limit, step int) int {
	return min(roundUp(ceil(n, max(1, ceil(n, limit))), step), limit)
}

func ceil(n, d int) int { return (n + d - 1) / d }

func roundUp(n, to int) int { return ceil(n, to) * to }
