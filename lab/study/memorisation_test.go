package study

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/internal/torture"
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
	for _, m := range []Memory{found.Repeated, found.Deduplicated} {
		for i, s := range m.Secrets {
			if s.Copies != 1<<i || s.Extracted != 0 || s.Exposure < 0 || s.Exposure > 4 {
				t.Errorf("%+v after three steps: want next to nothing known", s)
			}
		}
		if len(m.Secrets) != 7 || m.HeldOut < 3 || m.HeldOut > 8 {
			t.Errorf("%d numbers of copies, want 7; %g bits per byte of new documents", len(m.Secrets), m.HeldOut)
		}
	}
}

// The accept bands: what is repeated more is known better, and what is not repeated is not known.
func TestMemorisationAtFullSize(t *testing.T) {
	torture.Long(t)
	d, err := Open(filepath.Join(t.TempDir(), "memorisation"), "memorisation", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, found, err := Memorise(t.Context(), d, MemorisationOptions{Seed: 1, Steps: 1000, Documents: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	secrets := found.Repeated.Secrets
	for i, s := range secrets[1:] {
		if s.Extracted < secrets[i].Extracted || s.Exposure < secrets[i].Exposure-1 {
			t.Errorf("more copies, less memory: %+v after %+v", s, secrets[i])
		}
	}
	if last := secrets[len(secrets)-1]; last.Extracted < 0.8 {
		t.Errorf("of 64 copies %.2f are written", last.Extracted)
	}
	if once := found.Deduplicated.Extracted(); once > found.Repeated.Extracted()/5 {
		t.Errorf("without repeated documents %.2f are written, with them %.2f", once, found.Repeated.Extracted())
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
	m := Memories{
		Repeated:     Memory{Secrets: []Memorised{{1, 0, 2}, {16, 0.6, 9}, {64, 0.9, 10}}, HeldOut: 2},
		Deduplicated: Memory{Secrets: []Memorised{{1, 0, 2}, {16, 0, 2}, {64, 0, 2}}, HeldOut: 1.9},
	}
	if text := m.seen(78); !strings.Contains(text, "From 16 copies on") ||
		!strings.Contains(text, "78 repeated documents the model writes 0 % of all secrets, instead of 50 %") ||
		!strings.Contains(text, "1.900 bits per byte, instead of 2.000") {
		t.Error(text)
	}
}
