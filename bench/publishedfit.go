package bench

import (
	"math"
	"slices"
	"strconv"
	"sync"

	"anneal/hardware"
)

func itoa(n int) string { return strconv.Itoa(n) }

// FitPublished returns, for each kind of accelerator, the three constants that best predict the runs to fit: they
// minimise the sum of |log(predicted/measured)| of times. It searches one constant after the other on a narrowing
// grid. A few runs do not determine the constants, so each constant is drawn towards the typical value with the weight
// of half a run.
func FitPublished(list []*PublishedRun) map[string]hardware.Efficiency {
	kinds := map[string][]*PublishedRun{}
	for _, p := range list {
		if p.Fitted {
			kinds[p.Accelerator] = append(kinds[p.Accelerator], p)
		}
	}
	fitted := map[string]hardware.Efficiency{}
	for kind, rows := range kinds {
		fitted[kind] = fitKind(rows)
	}
	return fitted
}

func fitKind(rows []*PublishedRun) hardware.Efficiency {
	best := hardware.Typical
	least := badness(rows, best)
	for _, step := range []float64{0.2, 0.1, 0.05, 0.02} {
		for range 2 {
			for axis := range 3 {
				for _, sign := range []float64{-1, 1} {
					for {
						try := best
						x := []*float64{&try.Compute, &try.Memory, &try.Network}[axis]
						*x = math.Round(*x*(1+sign*step)*1000) / 1000
						if *x > 1 || *x < 0.1 {
							break
						}
						b := badness(rows, try)
						if b >= least {
							break
						}
						best, least = try, b
					}
				}
			}
		}
	}
	return best
}

// badness returns the mean error of rows with the given constants.
func badness(rows []*PublishedRun, e hardware.Efficiency) float64 {
	errs := make([]float64, len(rows))
	var group sync.WaitGroup
	for part := range 2 {
		group.Go(func() {
			for i := part; i < len(rows); i += 2 {
				run := *rows[i].Run
				c := *run.Cluster
				c.SetEfficiency(e)
				run.Cluster = &c
				s, err := run.Shortened()
				if err != nil {
					errs[i] = 10
					continue
				}
				errs[i] = min(math.Abs(math.Log(s.Seconds/rows[i].Published)), 1)
			}
		})
	}
	group.Wait()
	sum := 0.0
	for _, x := range errs {
		sum += x
	}
	t := hardware.Typical
	for _, d := range [][2]float64{{e.Compute, t.Compute}, {e.Memory, t.Memory}, {e.Network, t.Network}} {
		sum += 0.5 * math.Pow(math.Log(d[0]/d[1]), 2)
	}
	return sum / float64(len(errs))
}

// WorstFirst sorts runs by their error, the largest first.
func WorstFirst(list []*PublishedRun) {
	slices.SortStableFunc(list, func(a, b *PublishedRun) int {
		x, y := math.Abs(a.Error), math.Abs(b.Error)
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		default:
			return 0
		}
	})
}
