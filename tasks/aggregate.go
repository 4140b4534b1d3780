package tasks

import (
	"math"
	"math/rand/v2"
)

// resamples is the number of bootstrap samples for a standard error that has no formula. The relative error of such a
// standard error is about 1/√(2·resamples), 1.6 %.
const resamples = 2000

// aggregate returns the figure of a metric over all items, and its standard error: s/√n of a mean, and for other
// figures the standard deviation over samples of as many items, drawn with replacement (bootstrap; Efron 1979). It is
// NaN for a single item.
func aggregate(metric string, items []measure) (value, stderr float64) {
	switch how := aggregation(metric); how {
	case "mean":
		return meanOf(items)
	default:
		figure := func(sum measure) float64 {
			mean := sum.value / sum.weight
			if how == "bits_per_byte" {
				return -mean / math.Ln2
			}
			return math.Exp(-mean)
		}
		return figure(total(items, func(i int) int { return i })), bootstrap(items, figure)
	}
}

func total(items []measure, at func(i int) int) (sum measure) {
	for i := range items {
		m := items[at(i)]
		sum.value += m.value
		sum.weight += m.weight
	}
	return sum
}

func meanOf(items []measure) (mean, stderr float64) {
	n := float64(len(items))
	mean = total(items, func(i int) int { return i }).value / n
	squares := 0.0
	for _, m := range items {
		squares += (m.value - mean) * (m.value - mean)
	}
	if n < 2 {
		return mean, math.NaN()
	}
	return mean, math.Sqrt(squares/(n-1)) / math.Sqrt(n)
}

// bootstrap always draws the same samples.
func bootstrap(items []measure, figure func(sum measure) float64) float64 {
	if len(items) < 2 {
		return math.NaN()
	}
	random := rand.New(rand.NewPCG(1, uint64(len(items))))
	figures := make([]measure, resamples)
	for i := range figures {
		figures[i].value = figure(total(items, func(int) int { return random.IntN(len(items)) }))
	}
	_, stderr := meanOf(figures)
	return stderr * math.Sqrt(resamples)
}
