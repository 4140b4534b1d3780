package prepare

import (
	"fmt"
	"math"

	"anneal/dataset"
	"anneal/internal/units"
)

// enoughHeldOut is the recommended number of tokens in the validation split. The losses of single tokens have a
// standard deviation of 2 to 3 nats, so that the mean of 10,000 is known to about 0.03, a hundredth of its value.
const enoughHeldOut = 10_000

// RemarkHeldOut returns a warning, with advice, if the validation split of a data set is too small to tell models
// apart. It returns "" if the split is large enough or was not requested.
func RemarkHeldOut(m dataset.Manifest) string {
	val, all := m.Val.Counts, m.Train.Tokens+m.Val.Tokens
	switch {
	case val.Tokens >= enoughHeldOut && val.Documents > 1, val.Documents == 0 && m.ValFraction == 0:
		return ""
	case val.Documents == 0:
		return "nothing is held out: all of the text is one document\n" +
			"  add documents, or build a data set of other text with --val 1 and pass it to `anneal eval`"
	}
	remark := fmt.Sprintf("%s tokens in %s documents are held out, too few to compare models\n  ",
		units.Commas(val.Tokens), units.Commas(val.Documents))
	if val.Documents == 1 {
		remark = fmt.Sprintf("%s tokens in one document are held out, too few to compare models\n  ",
			units.Commas(val.Tokens))
	}
	if m.ValFraction == 0 {
		return remark + fmt.Sprintf("add to the validation files: %s tokens should be held out",
			units.Commas(enoughHeldOut))
	}
	share := roundUp(max(enoughHeldOut/float64(all), 2*m.ValFraction))
	if share > 0.3 {
		return remark + fmt.Sprintf("add text: the data has only %s tokens in all, and %s should be held out",
			units.Commas(all), units.Commas(enoughHeldOut))
	}
	return remark + fmt.Sprintf("try `anneal data build --val %v`, which holds out about %s tokens", share,
		units.Commas(int64(share*float64(all))))
}

// roundUp rounds up to one significant digit.
func roundUp(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	return math.Round(math.Ceil(x/unit-1e-9)*unit*1e9) / 1e9
}
