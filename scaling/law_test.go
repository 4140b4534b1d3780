package scaling

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// close fails unless got is within a share of want.
func close(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*math.Abs(want)) {
		t.Errorf("%s is %.10g, want %.10g within %g of it", what, got, want, share)
	}
}

// Figures of the closed form, worked out apart from this code, rounded to the digits that are given.
func TestOptimaOfPublishedLaws(t *testing.T) {
	for _, c := range []struct {
		law                          Law
		flops, params, tokens, ratio float64
	}{
		{Hoffmann, 5.76e23, 32.2e9, 2.98e12, 92.6},
		{Besiroglu, 5.76e23, 72.3e9, 1.33e12, 18.4},
		{Besiroglu, 1e18, 80.5e6, 2.07e9, 25.7},
		{Besiroglu, 1e19, 262e6, 6.36e9, 24.3},
		{Besiroglu, 1e21, 2.78e9, 60.0e9, 21.6},
		{Besiroglu, 1e25, 312e9, 5.34e12, 17.1},
	} {
		m := c.law.Optimum(c.flops)
		close(t, "N*", m.Params, c.params, 3e-3)
		close(t, "D*", m.Tokens, c.tokens, 4e-3)
		close(t, "D*/N*", m.Ratio(), c.ratio, 3e-3)
		close(t, "6ND", m.FLOPs, c.flops, 1e-12)
	}
	a, b := Besiroglu.Exponents()
	close(t, "a", a, 0.51261, 1e-4)
	close(t, "a+b", a+b, 1, 1e-12)
}

// No other size has a lower loss at the same FLOPs.
func TestOptimumIsTheLowest(t *testing.T) {
	for _, law := range []Law{Hoffmann, Besiroglu, {E: 0.5, A: 30, B: 4e4, Alpha: 0.2, Beta: 0.6}} {
		for _, flops := range []float64{1e15, 1e20, 1e26} {
			m := law.Optimum(flops)
			for _, factor := range []float64{0.5, 0.99, 1.01, 2} {
				if n := m.Params * factor; law.Loss(n, flops/6/n) <= m.Loss {
					t.Errorf("%+v, %g FLOPs: %g parameters have a lower loss than %g", law, flops, n, m.Params)
				}
			}
		}
	}
}

// Each inverse question returns to the model that it came from.
func TestInverseQuestions(t *testing.T) {
	for _, law := range []Law{Hoffmann, Besiroglu} {
		m := law.Optimum(3e22)
		byLoss, err := law.OptimumOfLoss(m.Loss)
		if err != nil {
			t.Fatal(err)
		}
		close(t, "N by loss", byLoss.Params, m.Params, 1e-9)
		close(t, "D by loss", byLoss.Tokens, m.Tokens, 1e-9)
		close(t, "C by size", law.OptimumOfSize(m.Params).FLOPs, m.FLOPs, 1e-9)
		close(t, "C by tokens", law.OptimumOfTokens(m.Tokens).FLOPs, m.FLOPs, 1e-9)
		if n, d := law.OptimumOfSize(7e9).Params, law.OptimumOfTokens(2e12).Tokens; n != 7e9 || d != 2e12 {
			t.Errorf("the optimum of 7e9 parameters has %v, that of 2e12 tokens %v", n, d)
		}
		tokens, err := law.TokensFor(2e9, law.Loss(2e9, 7e11))
		if err != nil {
			t.Fatal(err)
		}
		close(t, "D for a loss", tokens, 7e11, 1e-9)
		params, err := law.ParamsFor(7e11, law.Loss(2e9, 7e11))
		if err != nil {
			t.Fatal(err)
		}
		close(t, "N for a loss", params, 2e9, 1e-9)
	}
}

func TestLossesOutOfReach(t *testing.T) {
	_, endless := Besiroglu.OptimumOfLoss(Besiroglu.E)
	_, size := Besiroglu.TokensFor(1e9, Besiroglu.Loss(1e9, math.Inf(1)))
	_, tokens := Besiroglu.ParamsFor(1e9, Besiroglu.Loss(math.Inf(1), 1e9))
	for _, err := range []error{endless, size, tokens} {
		if u := (*UnreachableError)(nil); !errors.As(err, &u) {
			t.Errorf("got %v, want an UnreachableError", err)
		}
	}
	_, err := Law{E: 1.81716049}.OptimumOfLoss(1.8171)
	if text := fmt.Sprint(err); !strings.Contains(text, "loss of 1.8171 is") ||
		!strings.HasSuffix(text, "above 1.81717") {
		t.Errorf("the least loss is 1.81716049, the error says %s", text)
	}
}

// The worth of epochs, as a fraction of as many new tokens.
func TestRepetition(t *testing.T) {
	const unique = 1e10
	for epochs, worth := range map[float64]float64{0.5: 1, 1: 1, 2: .984, 4: .931, 8: .828, 16: .661, 40: .379} {
		got := EffectiveTokens(epochs*unique, unique) / (epochs * unique)
		if math.Abs(got-worth) > 6e-4 {
			t.Errorf("%v epochs are worth %.4f of new tokens, want %.3f", epochs, got, worth)
		}
	}
	close(t, "the worth of endless epochs", EffectiveTokens(1e30, 1), 1+15.387756, 1e-9)
	law := Besiroglu
	if m := law.Repeated(1e9, 2e10, math.Inf(1)); m != law.Model(1e9, 2e10) {
		t.Errorf("with endless text a model is %+v, not that of the law", m)
	}
	if m := law.RepeatedOptimum(1e20, 1e12); m != law.Optimum(1e20) {
		t.Errorf("where text suffices the best model is %+v, not the compute-optimal one", m)
	}
	free, scarce := law.Optimum(1e21), law.RepeatedOptimum(1e21, 5e9) // 60e9 tokens would be optimal
	if !(scarce.Params < free.Params && scarce.Tokens > free.Tokens && scarce.Loss > free.Loss) {
		t.Errorf("with a twelfth of the text the best model is %+v; with all of it, %+v", scarce, free)
	}
	for _, factor := range []float64{0.8, 1.25} {
		if n := scarce.Params * factor; law.Repeated(n, 1e21/6/n, 5e9).Loss <= scarce.Loss {
			t.Errorf("with repeated text %g parameters are better than %g", n, scarce.Params)
		}
	}
}

// With nothing to serve, the cheapest model is the compute-optimal one; the more it serves, the smaller it is.
func TestServing(t *testing.T) {
	law := Besiroglu
	target := law.Optimum(1e22)
	for _, served := range []float64{-1, math.NaN()} {
		if _, err := law.ForServing(target.Loss, served); err == nil {
			t.Errorf("%v tokens to serve are accepted", served)
		}
	}
	last, err := law.ForServing(target.Loss, 0)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "N without serving", last.Params, target.Params, 1e-9)
	close(t, "D without serving", last.Tokens, target.Tokens, 1e-9)
	close(t, "N with little serving", must(law.ForServing(target.Loss, 1e3)).Params, target.Params, 1e-4)
	for _, served := range []float64{1e11, 1e12, 1e13, 1e15} {
		m := must(law.ForServing(target.Loss, served))
		close(t, "the loss", m.Loss, target.Loss, 1e-9)
		if m.Params >= last.Params || m.Penalty <= last.Penalty || m.Total >= m.ChinchillaTotal {
			t.Errorf("for %g tokens served the model is %+v, after %+v", served, m, last)
		}
		for _, factor := range []float64{0.95, 1.05} {
			n := m.Params * factor
			tokens, err := law.TokensFor(n, target.Loss)
			if err == nil && Training(n, tokens)+Serving(n, served) <= m.Total {
				t.Errorf("for %g tokens served, %g parameters cost less than %g", served, n, m.Params)
			}
		}
		last = m
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
