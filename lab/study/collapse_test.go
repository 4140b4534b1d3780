package study

import "testing"

// A refitted Gaussian loses variance as theory says, and so does a table of frequencies its diversity; where data
// accumulates neither does.
func TestCollapseFollowsTheory(t *testing.T) {
	for _, g := range gaussians(Replace, 20, 30, 4000, 1) {
		if g.sigmas() > 3 { // the seed is fixed, so this cannot fail by chance
			t.Errorf("generation %d: variance %.4f ± %.4f, theory says %.4f", g.Generation, g.Mean, g.Error, g.Theory)
		}
	}
	if g := gaussians(Accumulate, 20, 30, 1000, 1)[29]; g.Mean < 0.85 {
		t.Errorf("with accumulated data the variance falls to %.3f", g.Mean)
	}
	replaced, kept, mixed := frequencies(Replace, 1000, 2000, 10, 200, 1),
		frequencies(Accumulate, 1000, 2000, 10, 50, 1),
		frequencies(Mix, 1000, 2000, 10, 50, 1)
	if g := replaced.Support[0]; g.sigmas() > 3 {
		t.Errorf("%.1f ± %.1f words in the first generation, theory says %.1f", g.Mean, g.Error, g.Theory)
	}
	for _, g := range replaced.Diversity {
		if g.sigmas() > 3 {
			t.Errorf("generation %d: diversity %.5f ± %.5f, theory says %.5f", g.Generation, g.Mean, g.Error, g.Theory)
		}
	}
	end := func(f Frequencies) float64 { return f.Support[9].Mean }
	if !(end(replaced) < 200 && end(mixed) > 240 && end(mixed) < 340 && end(kept) > 480) {
		t.Errorf("after ten generations %.0f words are left, %.0f with a tenth of real data, %.0f with all data",
			end(replaced), end(mixed), end(kept))
	}
	if a, b := replaced.Entropy[0].Mean, replaced.Entropy[9].Mean; b > a-0.5 {
		t.Errorf("entropy goes from %.2f to %.2f nats", a, b)
	}
}
