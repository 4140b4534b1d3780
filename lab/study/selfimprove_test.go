package study

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"anneal/internal/torture"
)

func selfImprove(t *testing.T, o SelfImproveOptions) (*Report, []Improved) {
	t.Helper()
	d, err := Open(filepath.Join(t.TempDir(), "self"), "selfimprove", o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, list, err := SelfImprove(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	if again, same, err := SelfImprove(t.Context(), d, o); err != nil || again.Seen != r.Seen ||
		fmt.Sprint(same) != fmt.Sprint(list) {
		t.Errorf("again it says %q: %v", again.Seen, err)
	}
	return r, list
}

// A model that has hardly learnt anything has no right answers to learn from, but it has answers. Asked again the study
// says the same.
func TestSelfImprovementHasItsControls(t *testing.T) {
	_, list := selfImprove(t, SelfImproveOptions{Seed: 1, Examples: 60, Pool: 40, Rounds: 1, Steps: 20})
	all := list[wayUnfiltered]
	if len(all.Accuracy) != 2 || all.Rounds[1].Accepted+all.Rounds[1].Unfinished != 40 || all.Rounds[1].Rejected != 0 {
		t.Errorf("without the filter: %+v", all)
	}
	if right := list[wayFiltered]; right.First() != all.First() || len(right.Accuracy) > 2 {
		t.Errorf("with the filter: %+v", right)
	}
	if longer := list[wayLonger]; len(longer.Accuracy) != 1 {
		t.Errorf("the seeds alone: %+v", longer)
	}
}

// The accept bands at full size, after three rounds.
func TestSelfImprovementAtFullSize(t *testing.T) {
	torture.Long(t)
	_, list := selfImprove(t, SelfImproveOptions{Seed: 1, Examples: 300, Pool: 2000, Rounds: 3, Steps: 600, Decay: 1})
	filtered, hinted, all := list[wayFiltered], list[wayHinted], list[wayUnfiltered]
	if filtered.First() < 0.05 || filtered.First() > 0.6 || filtered.Last() < 0.85 {
		t.Errorf("with the filter: %v", filtered.Accuracy)
	}
	if hinted.Last() < 0.85 {
		t.Errorf("with hints: %v", hinted.Accuracy)
	}
	if all.Last() > all.First()+0.1 {
		t.Errorf("without the filter: %v", all.Accuracy)
	}
}

func TestSelfImprovementSaysWhatItSaw(t *testing.T) {
	o := SelfImproveOptions{Examples: 300, Pool: 2000}
	list := []Improved{{Accuracy: []float64{0.2, 0.5, 0.9}}, {Accuracy: []float64{0.1, 1}},
		{Accuracy: []float64{0.2, 0.19}}, {Accuracy: []float64{0.3}}}
	if text := improvedSeen(o, list); !strings.Contains(text, "50.0 and 90.0 % after 2 rounds") ||
		!strings.Contains(text, "So it is the filter") {
		t.Error(text)
	}
	list[wayUnfiltered].Accuracy[1] = 0.8
	if text := improvedSeen(o, list); !strings.Contains(text, "is not what improves") {
		t.Error(text)
	}
	list[wayFiltered].Accuracy = []float64{0.01}
	if text := improvedSeen(o, list); !strings.Contains(text, "did not improve") {
		t.Error(text)
	}
}
