package study

import (
	"path/filepath"
	"strings"
	"testing"
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

// What is said follows from the figures.
func TestEmergenceSaysWhatItSaw(t *testing.T) {
	facts := []Capacity{{"facts", 8, 2800, 0.4, 0.01, 0.004}, {"facts", 32, 30000, 1, 1, 1}}
	smooth := append(facts[:2:2], Capacity{"addition", 8, 5000, 0.5, 0.04, 0.03},
		Capacity{"addition", 12, 9000, 1, 1, 1})
	sharp := append(facts[:2:2], Capacity{"addition", 8, 5000, 0.66, 0.01, 0.12},
		Capacity{"addition", 12, 9000, 1, 1, 1})
	if text := emergenceSeen(sharp); !strings.Contains(text, "not all emergence is a mirage") ||
		!strings.Contains(text, "within 0.006") {
		t.Error(text)
	}
	if text := emergenceSeen(smooth); strings.Contains(text, "not all emergence") {
		t.Error(text)
	}
}
