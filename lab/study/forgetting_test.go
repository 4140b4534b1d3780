package study

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// A few steps are enough to see that every model starts from the first task, and that its curve has its end.
func TestForgettingStartsFromTheFirstTask(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "forgetting"), "forgetting", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, list, err := Forget(t.Context(), d, ForgettingOptions{Seed: 1, Steps: 20})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range list {
		if f.Replay != replays[i] || f.Before != list[0].Before || len(f.First) != 10 || f.After != f.First[9] ||
			math.IsNaN(f.Second) {
			t.Errorf("%+v", f)
		}
	}
}

func TestForgettingSaysWhatItSaw(t *testing.T) {
	list := []Forgetting{{Before: 1, After: 0.01, Second: 1, First: []float64{0.2, 0.01}},
		{Replay: 0.01, Before: 1, After: 0.4, Second: 1}, {Replay: 0.05, Before: 1, After: 0.96, Second: 1}}
	if text := forgettingSeen(list); !strings.Contains(text, "So 5 % of old examples are enough") {
		t.Error(text)
	}
	if text := forgettingSeen(list[:2]); strings.Contains(text, "enough") {
		t.Error(text)
	}
}
