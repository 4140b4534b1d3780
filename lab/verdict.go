package lab

import (
	"fmt"
	"math"
)

// Compare fills in by how much variants differ from the first, seed by seed, because runs with the same seed share
// much of their random variation.
func Compare(list []Ablated) {
	p := make([]float64, len(list))
	for i := range list {
		v := &list[i]
		var changes []float64
		for s := range v.Runs {
			first, r := list[0].Runs[s], &v.Runs[s]
			if i > 0 && !r.Diverged && !first.Diverged {
				r.Change = r.ValBitsPerByte/first.ValBitsPerByte - 1
				changes = append(changes, r.Change)
			}
		}
		v.Change, v.Interval, p[i] = paired(changes)
	}
	for i, x := range holm(p) {
		list[i].P = x
	}
}

// paired returns the mean of differences, half of its 95 % interval, and the probability of such a mean if there is no
// difference, by Student's t. With fewer than two differences, unknown results are NaN.
func paired(differences []float64) (mean, interval, p float64) {
	n := float64(len(differences))
	if n == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	for _, x := range differences {
		mean += x / n
	}
	if n < 2 {
		return mean, math.NaN(), math.NaN()
	}
	squares := 0.0
	for _, x := range differences {
		squares += (x - mean) * (x - mean)
	}
	deviation := math.Sqrt(squares / (n - 1) / n) // of the mean
	switch {
	case deviation == 0 && mean == 0:
		return 0, 0, 1
	case deviation == 0:
		return mean, 0, 0
	}
	return mean, tQuantile(alpha, n-1) * deviation, tTail(math.Abs(mean)/deviation, n-1)
}

// Verdict describes in words how a variant differs from the first.
func (a *Ablated) Verdict() string {
	diverged := 0
	for _, r := range a.Runs {
		if r.Diverged {
			diverged++
		}
	}
	switch text := a.difference(); {
	case diverged == 0:
		return text
	case diverged == len(a.Runs) || text == "":
		return fmt.Sprintf("%d of %d runs diverged", diverged, len(a.Runs))
	default:
		return fmt.Sprintf("%d of %d runs diverged; the others: %s", diverged, len(a.Runs), text)
	}
}

// difference describes in words how the runs that did not diverge differ from those of the first variant.
func (a *Ablated) difference() string {
	change, interval, direction := 100*math.Abs(a.Change), 100*a.Interval, "worse"
	if a.Change < 0 {
		direction = "better"
	}
	digits := decimals(interval)
	switch {
	case a.Name == baseline:
		return ""
	case math.IsNaN(a.Change):
		return "nothing to compare with: the first variant diverged"
	case math.IsNaN(a.Interval):
		return fmt.Sprintf("%s by %.1f %%, of one seed: it may be chance", direction, change)
	case a.P < alpha:
		return fmt.Sprintf("%s by %.*f ± %.*f %%", direction, digits, change, digits, interval)
	case change > interval: // it would be significant as the only comparison
		return fmt.Sprintf("perhaps %s by %.*f ± %.*f %%: of so many comparisons one may look so by chance", direction,
			digits, change, digits, interval)
	}
	return fmt.Sprintf("no difference seen: %+.*f ± %.*f %%", digits, 100*a.Change, digits, interval)
}

// decimals returns the number of decimals, 1 to 4, that an interval needs to show a digit other than zero.
func decimals(interval float64) int {
	return int(min(max(math.Ceil(-math.Log10(interval)), 1), 4))
}
