package study

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/internal/torture"
)

// A few steps are enough to see that measures belong together, and to have all figures.
func TestEmergenceHasAllModels(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "emergence"), "emergence", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r, list, err := Emerge(t.Context(), d, EmergenceOptions{Seed: 1, Steps: 20})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 12 || len(r.Charts) != 2 {
		t.Errorf("%d models and %d charts, want 12 and 2", len(list), len(r.Charts))
	}
	for i, c := range list {
		if c.Parameters == 0 || c.Accuracy <= 0 || c.Exact > c.Accuracy || c.Predicted > c.Accuracy ||
			i > 0 && list[i-1].Task == c.Task && list[i-1].Parameters >= c.Parameters {
			t.Errorf("%+v", c)
		}
	}
}

// The accept bands: facts are learnt smoothly, and the power of the digits predicts whole answers; additions are
// learnt at once.
func TestEmergenceAtFullSize(t *testing.T) {
	torture.Long(t)
	d, err := Open(filepath.Join(t.TempDir(), "emergence"), "emergence", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, list, err := Emerge(t.Context(), d, EmergenceOptions{Seed: 1, Steps: 2500})
	if err != nil {
		t.Fatal(err)
	}
	var before Capacity
	sharpest := 0.0
	for _, c := range list {
		switch {
		case c.Task == "facts" && math.Abs(c.Exact-c.Predicted) > 0.1:
			t.Errorf("the power of the digits does not predict the answers: %+v", c)
		case c.Task == "facts" && before.Task == "facts" && c.Accuracy < before.Accuracy-0.05:
			t.Errorf("a larger model knows less: %+v after %+v", c, before)
		case c.Task == "addition" && before.Task == "addition":
			sharpest = max(sharpest, c.Exact-before.Exact)
		}
		before = c
	}
	if sharpest < 0.5 {
		t.Errorf("from one width to the next the share of right additions grows by %.2f at most", sharpest)
	}
}

// What is said follows from the figures.
func TestEmergenceSaysWhatItSaw(t *testing.T) {
	facts := []Capacity{{"facts", 8, 2800, 0.4, 0.01, 0.004}, {"facts", 32, 30000, 1, 1, 1}}
	smooth := append(facts[:2:2], Capacity{"addition", 8, 5000, 0.5, 0.04, 0.03},
		Capacity{"addition", 12, 9000, 1, 1, 1})
	sharp := append(facts[:2:2], Capacity{"addition", 8, 5000, 0.66, 0.01, 0.12},
		Capacity{"addition", 12, 9000, 1, 1, 1})
	if text := emergenceSeen(sharp); !strings.Contains(text, "not all emergence is a mirage") ||
		!strings.Contains(text, "within 0.006: they seem") || !strings.Contains(text, "some digits are much harder") {
		t.Error(text)
	}
	if text := emergenceSeen(smooth); strings.Contains(text, "not all emergence") {
		t.Error(text)
	}
}
