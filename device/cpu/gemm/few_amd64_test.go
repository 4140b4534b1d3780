package gemm

import (
	"fmt"
	"testing"
)

// Kernels that prefetch to another cache level than this CPU uses are tested as well.
func TestFewRowsWithEachLevelOfPrefetching(t *testing.T) {
	defer func(level int) { fewLevel = level }(fewLevel)
	for level := 1; level <= 2; level++ {
		t.Run(fmt.Sprint(level), func(t *testing.T) {
			fewLevel = level
			everyNumberOfFewRowsIsThatOfMany(t)
		})
	}
}
