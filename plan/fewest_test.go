package plan

import (
	"testing"

	"pgregory.net/rapid"
)

// The search jumps, and finds what counting up from one rank finds.
func TestFewestIsTheFirstThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "unit")
		divided := rapid.Int64Range(1, 1<<45).Draw(t, "divided")
		each := rapid.Int64Range(0, 60<<30).Draw(t, "each")
		const bytes = 78 << 30
		need := func(ranks int) int64 { return (divided+int64(ranks)-1)/int64(ranks) + each }
		want := unit
		for want <= mostRanks && need(want) > bytes {
			want += unit
		}
		if got := fewest(unit, bytes, need); want <= mostRanks && got != want {
			t.Errorf("%d ranks, and %d hold it", got, want)
		}
	})
}
