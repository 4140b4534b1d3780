package prepare

import (
	"strings"
	"testing"

	"anneal/dataset"
)

func TestASmallHeldOutSplitIsRemarkedOn(t *testing.T) {
	counts := func(documents, tokens uint64) dataset.SplitInfo {
		return dataset.SplitInfo{Counts: dataset.Counts{Documents: documents, Tokens: tokens}}
	}
	for _, c := range []struct {
		train, val dataset.SplitInfo
		share      float64
		want       string // "" is no remark
	}{
		{counts(10000, 1_000_000), counts(100, 10_000), 0.01, ""},
		{counts(1, 1_000_000), counts(0, 0), 0, ""},
		{counts(0, 0), counts(50, 10_000), 1, ""},
		{counts(300, 1_000_000), counts(1, 210), 0.001, "210 tokens in one document are held out, too few to compare " +
			"models\n  try `anneal data build --val 0.01`, which holds out about 10,002 tokens"},
		{counts(300, 300_000), counts(3, 2_900), 0.01,
			"2,900 tokens in 3 documents are held out, too few to compare models\n" +
				"  try `anneal data build --val 0.04`"},
		{counts(30, 1_000_000), counts(1, 20_000), 0.01,
			"20,000 tokens in one document are held out, too few to compare models\n" +
				"  try `anneal data build --val 0.02`"},
		{counts(30, 3_000), counts(1, 210), 0.01,
			"add text: the data has only 3,210 tokens in all, and 10,000 should be held out"},
		{counts(0, 0), counts(30, 3_000), 1, "add text"},
		{counts(300, 1_000_000), counts(2, 210), 0,
			"in 2 documents are held out, too few to compare models\n  add to the validation files"},
		{counts(1, 50_000), counts(0, 0), 0.01, "nothing is held out: all of the text is one document"},
	} {
		got := RemarkHeldOut(dataset.Manifest{ValFraction: c.share, Train: c.train, Val: c.val})
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v, --val %v: %q, want %q", c.val.Counts, c.share, got, c.want)
		}
	}
}
