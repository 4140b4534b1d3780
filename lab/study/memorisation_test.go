package study

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/prepare/synth"
)

func TestMemorisationAsksForAllSecrets(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "memorisation"), "memorisation", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, found, err := Memorise(t.Context(), d, MemorisationOptions{Seed: 1, Steps: 3, Documents: 300})
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range found {
		for i, m := range list {
			if m.Copies != 1<<i || m.Extracted != 0 || m.Exposure < 0 || m.Exposure > 4 {
				t.Errorf("%s: %+v after three steps: want next to nothing known", name, m)
			}
		}
		if len(list) != 7 {
			t.Errorf("%s: %d numbers of copies, want 7", name, len(list))
		}
	}
}

// Repeated documents go, the first stays, and every secret is still there once.
func TestDistinctKeepsTheFirst(t *testing.T) {
	got, err := distinct([]string{"a b", "c", "a b", "d", "c"}, t.TempDir())
	if err != nil || !slices.Equal(got, []string{"a b", "c", "d"}) {
		t.Errorf("%q: %v", got, err)
	}
	c := synth.Canaries{Background: 50, Each: 3, Copies: []int{1, 5}, References: 4, Seed: 2}
	text, err := c.Text()
	secrets, references := c.Secrets()
	if err != nil || len(secrets) != 2 || len(references) != 4 {
		t.Fatal(len(secrets), len(references), err)
	}
	once, err := distinct(text.Train, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(text.Train, "\n")
	for i, group := range secrets {
		for _, s := range group {
			if strings.Count(all, s) != c.Copies[i] || strings.Count(strings.Join(once, "\n"), s) != 1 {
				t.Errorf("%s is there %d times, want %d, and once without repeats",
					s, strings.Count(all, s), c.Copies[i])
			}
		}
	}
	for _, s := range references {
		if strings.Contains(all, s[:5]) {
			t.Errorf("%s is in the text", s)
		}
	}
}

func TestMemorisationSaysWhatItSaw(t *testing.T) {
	text := memorisationSeen(map[string][]Memorised{
		"text":         {{1, 0, 2}, {16, 0.6, 9}, {64, 1, 10}},
		"deduplicated": {{1, 0, 2}, {16, 0, 2}, {64, 0, 2}},
	}, 78)
	if !strings.Contains(text, "From 16 copies on") ||
		!strings.Contains(text, "78 repeated documents the model writes 0 %") {
		t.Error(text)
	}
}
