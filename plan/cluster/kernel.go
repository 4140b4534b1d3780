package cluster

import (
	"math"

	"anneal/hardware"
)

// A machine computes kernel times: the larger of the time for the operations and the time for the bytes, plus the gap
// before the kernel.
type machine struct {
	*hardware.Accelerator
	fitted hardware.Efficiency
}

func newMachine(c *hardware.Cluster) machine {
	return machine{c.Accelerator, c.Accelerator.Efficiency()}
}

// product returns the time of n products of [m, k] with [k, n].
func (a machine) product(m, n, k, count int, p hardware.Precision) float64 {
	if m < 1 || n < 1 || k < 1 || count < 1 {
		return 0
	}
	fm, fn, fk, c := float64(m), float64(n), float64(k), float64(count)
	flops := 2 * fm * fn * fk * c
	bytes := 2 * (fm*fk + fk*fn + fm*fn) * c
	return max(flops/(a.BestProduct(p)*a.fitted.Compute*a.fill(m, n, k, count)), a.seconds(bytes)) + a.Launch
}

// fill returns the share of the best rate that a product's size allows. Rows and columns are padded to tiles, and
// tiles run in waves of one tile per core; the last wave may not be full. The best of three sizes of tiles counts;
// smaller tiles read more per operation. A tile first fills its pipeline, for about as long as half a tile of k.
// Operands whose rows are not multiples of 16 bytes need narrower loads, which halves the rate.
func (a machine) fill(m, n, k, count int) float64 {
	t := float64(a.Tile)
	best := 0.0
	for _, size := range [3]struct{ m, n, rate float64 }{{t, 2 * t, 1}, {t, t, 0.92}, {t, t / 2, 0.75}} {
		rows, columns := math.Ceil(float64(m)/size.m), math.Ceil(float64(n)/size.n)
		used := float64(m) * float64(n) / (rows * columns * size.m * size.n)
		if a.Cores > 0 {
			tiles, cores := rows*columns*float64(count), float64(a.Cores)
			used *= tiles / (math.Ceil(tiles/cores) * cores)
		}
		best = max(best, used*size.rate)
	}
	if a.Cores > 0 && (n%8 != 0 || k%8 != 0) {
		best /= 2
	}
	depth := float64(k)
	return best * depth / (depth + t/2)
}

// seconds returns the time to read or write bytes.
func (a machine) seconds(bytes float64) float64 { return bytes / (a.Bandwidth * a.fitted.Memory) }

// pass returns the time of a kernel that only moves bytes.
func (a machine) pass(bytes float64) float64 {
	if bytes <= 0 {
		return 0
	}
	return a.seconds(bytes) + a.Launch
}

// attend returns the time of a fused attention kernel; flops counts whole tiles. Narrow heads give tensor cores less
// work per exponential.
func (a machine) attend(kernel string, flops float64, head int) float64 {
	share := a.Accelerator.Attention[kernel]
	if share == 0 {
		share = 0.4
	}
	if head < 128 {
		share *= math.Sqrt(float64(head) / 128)
	}
	peak := a.Peak[a.Computes(hardware.BF16)]
	return flops/(share*peak*a.fitted.Compute) + a.Launch
}
