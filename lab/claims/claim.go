package claims

import (
	"cmp"
	"context"
	"slices"
)

// A Claim is a statement about training that can be checked.
type Claim struct {
	Number  int
	Says    string  // in one sentence
	Source  string  // who says so
	How     string  // how it is measured here
	Rule    string  // Judge, in words
	Seconds float64 // approximate time of the measurement on two cores

	Measure func(ctx context.Context, e *Env) ([]Figure, error)
	Judge   func(f *Figures) Verdict
}

// quickSeconds is the time up to which a claim is cheap to measure, on two cores.
const quickSeconds = 30

// Quick reports whether the claim is cheap to measure.
func (c Claim) Quick() bool { return c.Seconds <= quickSeconds }

// First and Last are the range of numbers.
const (
	First = 1
	Last  = 60
)

// All returns every claim, by number.
func All() []Claim {
	list := slices.Concat(
		memoryClaims(), optimizerClaims(), recomputeClaims(), pipelineClaims(), parallelClaims(), hardwareClaims(),
		attentionClaims(), numberClaims(), scheduleClaims(), recipeClaims(),
		trainingClaims(), dataClaims(), transferClaims(), studyClaims(),
	)
	slices.SortFunc(list, func(a, b Claim) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// A Ruling is the kind of a verdict.
type Ruling string

// The rulings.
const (
	Holds         Ruling = "holds"
	HoldsWhen     Ruling = "holds when"
	DoesNotHold   Ruling = "does not hold"
	NotMeasurable Ruling = "not measurable here"
)

// A Verdict is the result of applying a claim's rule to figures.
type Verdict struct {
	Ruling    Ruling `json:"verdict"`
	Condition string `json:"condition,omitempty"` // of HoldsWhen
	Why       string `json:"why"`                 // a sentence that quotes figures
}

// String returns the ruling with its condition: "holds when attention keeps its score matrices".
func (v Verdict) String() string {
	if v.Condition != "" {
		return string(v.Ruling) + " " + v.Condition
	}
	return string(v.Ruling)
}

// choose returns the verdict of a claim that either holds or does not.
func choose(holds bool, why string) Verdict {
	if holds {
		return Verdict{Ruling: Holds, Why: why}
	}
	return Verdict{Ruling: DoesNotHold, Why: why}
}

// when returns the verdict of a claim that holds under a condition.
func when(condition, why string) Verdict { return Verdict{HoldsWhen, condition, why} }

// elsewhere returns the verdict of a claim about something that cannot be measured here.
func elsewhere(why string) Verdict { return Verdict{Ruling: NotMeasurable, Why: why} }
