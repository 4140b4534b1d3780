package gemm

import (
	"fmt"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
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

func TestSpareMemoryHoldsAKBlock(t *testing.T) {
	x := newProduct(f32Tile(isa.AVX2), f32Packer(isa.AVX2), f32Store(isa.AVX2))
	spare := x.scratchSizes().a - 2*fewRows*colStep
	if need := spareWords + x.tile.maxK*tensor.Side; spare < need {
		t.Errorf("kernels of few rows have %d spare words; widened blocks need %d", spare, need)
	}
}
