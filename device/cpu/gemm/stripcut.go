package gemm

import "anneal/device"

// Costs in nanoseconds per element on one core of a 3.5 GHz server with tiles, like those in sizes: of a product; of
// reading a in place; of packing a by rows and by columns; of packing b; of adding to a sum that has left the
// second-level cache; and of mirroring.
const (
	stripProduct = 0.0008
	stripReadA   = 0.02
	stripRowsA   = 0.05
	stripColsA   = 0.07
	stripB       = 0.1
	stripAgain   = 0.15
	stripMirror  = 1.0
	stripUneven  = 0.05 // spread of the workers' times, as a share
)

// stripsTN is the number of strips whose rows of a are packed together in form TN.
const stripsTN = 4

// maxDeep is the number of words of packed b that all strips use before the next part is packed: less than half of a
// second-level cache of 2 MiB.
const maxDeep = 200 << 10

// chooseStrips returns the fastest cut of a product into strips by these costs. b is packed in parts that stay in the
// second-level cache while all strips use them. Wide tasks read a less often; narrow ones need fewer rounds of adding
// to the sums.
func chooseStrips(form device.Form, m, n, k int, z *sizes, plain bool, workers int, symmetric bool) cut {
	c := cut{m: m, n: n, k: k, sizes: *z, symmetric: symmetric, depth: z.depth(k)}
	costA := stripRowsA
	switch {
	case form == device.TN:
		costA = stripColsA
	case plain:
		costA = stripReadA
	}
	panelsM, panelsN := ceil(m, z.mr), ceil(n, colStep)
	best, lowest := c, -1.0
	first := ceil(panelsN, z.maxN/colStep)
	for across := first; across <= min(panelsN, first+24); across++ {
		c.cols = ceil(panelsN, across)
		c.strideB = (roundUp(ceil(c.depth, z.group), z.stepK) + 1) * colStep
		c.strideK = c.cols * c.strideB
		blocks := ceil(k, c.depth)
		c.deep = max(1, min(blocks, maxDeep/c.strideK)) * c.depth
		rounds := ceil(k, c.deep)
		c.keep = rounds <= 1
		first := 1
		if !c.keep { // the sums of a task must be loaded again in the next round
			first = ceil(panelsM, max(1, z.maxC/(c.cols*colStep*z.mr)))
		}
		for down := first; down <= min(panelsM, first+8); down++ {
			c.down, c.across, c.rows = down, across, ceil(panelsM, down)
			packs := float64(down)
			if c.keep {
				packs = packers(down, across, workers)
			}
			tasks, mirror := down*across, 0.0
			if symmetric {
				tasks = staircase(down, across)
				mirror = stripMirror * float64(m*n) / float64(max(k, 1))
			}
			share := float64(tasks) / float64(down*across)
			cost := (stripProduct*float64(m*n) + costA*float64(m*across) + stripB*packs*float64(n)) * float64(max(k, 1))
			cost += stripAgain * float64(m*n*(rounds-1))
			if workers > 1 { // workers differ in speed, and the slowest one's last task counts
				cost *= 1 + stripUneven/float64(ceil(tasks, workers))
			}
			cost = cost*share*c.idle(tasks, workers) + mirror*(1-share)*float64(max(k, 1))
			if lowest < 0 || cost < lowest {
				best, lowest = c, cost
			}
		}
	}
	return best
}
