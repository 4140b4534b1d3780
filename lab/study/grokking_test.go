package study

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/internal/torture"
)

// Two hundred steps are enough to memorise, not to generalise. Asked again the study trains nothing, and says the same.
func TestGrokkingMemorisesFirst(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "grok"), "grokking", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	trained := make(chan string, 9)
	d.Note = func(text string) { trained <- text }
	r, runs, err := Grok(t.Context(), d, GrokkingOptions{Seeds: 1, Steps: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range runs {
		last := len(g.Val) - 1
		if g.Memorised == 0 || g.Memorised > 180 || g.Generalised > 0 || g.Val[last] > 0.5 {
			t.Errorf("%s memorised at step %d, generalised at %d, and has %.2f of the unseen sums", g.Name, g.Memorised,
				g.Generalised, g.Val[last])
		}
	}
	if want := "1 of 1 models memorised 99 % of their sums, and 0 of them"; !strings.Contains(r.Seen, want) {
		t.Errorf("%q does not say %q", r.Seen, want)
	}
	again, _, err := Grok(t.Context(), d, GrokkingOptions{Seeds: 1, Steps: 200})
	if err != nil || again.Seen != r.Seen || len(trained) != 2 {
		t.Errorf("%d runs trained, want 2 in all; it says %q: %v", len(trained), again.Seen, err)
	}
}

// The accept bands: memorised at once, generalised long after, never without decay, and by a few frequencies.
func TestGrokkingAtFullSize(t *testing.T) {
	torture.Long(t)
	d, err := Open(filepath.Join(t.TempDir(), "grok"), "grokking", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, runs, err := Grok(t.Context(), d, GrokkingOptions{Seeds: 1, Steps: 2000})
	if err != nil {
		t.Fatal(err)
	}
	decay, none := runs[0], runs[1]
	last := len(none.Val) - 1
	if decay.Memorised > 300 || decay.Generalised < 3*decay.Memorised || decay.Generalised == 0 {
		t.Errorf("memorised at step %d, generalised at %d", decay.Memorised, decay.Generalised)
	}
	if none.Memorised == 0 || none.Memorised > 300 || none.Val[last] > 0.5 {
		t.Errorf("without decay it memorised at step %d and has %.2f of the unseen sums", none.Memorised,
			none.Val[last])
	}
	weights := len(decay.Fourier) - 1
	if decay.Fourier[weights] < 0.6 || none.Fourier[weights] > 0.5 || decay.Norm[weights] > decay.Norm[0] {
		t.Errorf("five frequencies have %.2f of the power, %.2f without decay; the norm goes from %.1f to %.1f",
			decay.Fourier[weights], none.Fourier[weights], decay.Norm[0], decay.Norm[weights])
	}
}

// A wave has all of its power in one frequency, noise the same in each.
func TestFourierShare(t *testing.T) {
	const p = 47
	var wave, peak [][]float64
	for n := range p {
		wave = append(wave, []float64{3 + math.Cos(2*math.Pi*5*float64(n)/p),
			math.Sin(2 * math.Pi * 5 * float64(n) / p)})
		peak = append(peak, []float64{0})
	}
	peak[3][0] = 1
	if s := fourierShare(wave, 1); math.Abs(s-1) > 1e-12 {
		t.Errorf("a wave has %v of its power in one frequency", s)
	}
	if s := fourierShare(peak, 5); math.Abs(s-5./23) > 1e-12 {
		t.Errorf("a peak has %v of its power in 5 of 23 frequencies", s)
	}
}

// What is said follows from the figures, whatever they are.
func TestGrokkingSaysWhatItSaw(t *testing.T) {
	of := func(memorised, generalised int, fourier float64) GrokkingRun {
		return GrokkingRun{
			Memorised: memorised, Generalised: generalised, Val: []float64{0.2}, Fourier: []float64{fourier},
			Norm: []float64{9},
		}
	}
	for _, c := range []struct {
		runs         []GrokkingRun
		says, silent string
	}{
		{[]GrokkingRun{of(100, 1200, 0.8), of(90, 0, 0.3)}, "a few rotations", "says nothing"},
		{[]GrokkingRun{of(100, 1200, 0.5), of(90, 0, 0.3)}, "1 of them after more than ten times", "a few rotations"},
		{[]GrokkingRun{of(100, 500, 0.8), of(0, 0, 0.7)}, "did not even memorise", "a few rotations"},
	} {
		text := grokSeen(c.runs)
		if !strings.Contains(text, c.says) || strings.Contains(text, c.silent) ||
			!strings.Contains(text, "1 of 1 models memorised") {
			t.Error(text)
		}
	}
}
