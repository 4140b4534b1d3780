package scaling

import (
	"fmt"
	"math"
)

// Law is the loss of a model with N parameters after D tokens (Hoffmann et al. 2022, arXiv 2203.15556, approach 3):
//
//	L(N, D) = E + A/N^α + B/D^β
//
// E is the lower limit of the loss, the entropy of the text. The other terms are the losses due to a finite model and
// to finite training. All tokens are read once; repetition.go handles data that is read more often.
//
// Parameters, tokens and FLOPs are above 0; of other numbers, methods without an error return NaN or infinities. Check
// of a Question refuses them.
type Law struct {
	E     float64 `json:"E"`
	A     float64 `json:"A"`
	B     float64 `json:"B"`
	Alpha float64 `json:"alpha"`
	Beta  float64 `json:"beta"`
}

// flopsPerToken is the FLOPs per training token and parameter: a multiplication and an addition forward, twice that
// backward. Attention's own products are left out.
const flopsPerToken = 6

// Training returns the FLOPs of training: 6·N·D.
func Training(params, tokens float64) float64 { return flopsPerToken * params * tokens }

// Loss returns L(N, D).
func (l Law) Loss(params, tokens float64) float64 {
	return l.E + l.A*math.Pow(params, -l.Alpha) + l.B*math.Pow(tokens, -l.Beta)
}

// Model is a model and its training.
type Model struct {
	Params float64 `json:"params"`
	Tokens float64 `json:"tokens"`
	FLOPs  float64 `json:"flops"`
	Loss   float64 `json:"loss"` // nats per token
}

// Ratio is the number of training tokens for each parameter.
func (m Model) Ratio() float64 { return m.Tokens / m.Params }

// Model returns the model with the given size and training tokens.
func (l Law) Model(params, tokens float64) Model {
	return Model{Params: params, Tokens: tokens, FLOPs: Training(params, tokens), Loss: l.Loss(params, tokens)}
}

// Exponents are a and b of the compute-optimal model of C FLOPs, N* ∝ C^a and D* ∝ C^b: a = β/(α+β), b = α/(α+β).
func (l Law) Exponents() (a, b float64) {
	return l.Beta / (l.Alpha + l.Beta), l.Alpha / (l.Alpha + l.Beta)
}

// balance is G of the closed form N* = G·(C/6)^a: G = (α·A/(β·B))^(1/(α+β)).
func (l Law) balance() float64 {
	return math.Pow(l.Alpha*l.A/(l.Beta*l.B), 1/(l.Alpha+l.Beta))
}

// Optimum returns the compute-optimal model: the one with the lowest loss of all models that take the given FLOPs to
// train.
func (l Law) Optimum(flops float64) Model {
	a, _ := l.Exponents()
	params := l.balance() * math.Pow(flops/flopsPerToken, a)
	return l.Model(params, flops/flopsPerToken/params)
}

// OptimumOfSize returns the compute-optimal model with the given number of parameters.
func (l Law) OptimumOfSize(params float64) Model {
	a, _ := l.Exponents()
	m := l.Optimum(flopsPerToken * math.Pow(params/l.balance(), 1/a))
	return l.Model(params, m.Tokens) // params to the last digit
}

// OptimumOfTokens returns the compute-optimal model for the given number of training tokens.
func (l Law) OptimumOfTokens(tokens float64) Model {
	_, b := l.Exponents()
	m := l.Optimum(flopsPerToken * math.Pow(tokens*l.balance(), 1/b))
	return l.Model(m.Params, tokens)
}

// OptimumOfLoss returns the model that reaches a loss with the fewest FLOPs. A compute-optimal model has
// α·A/N^α = β·B/D^β, so that both terms are fixed shares of what is above E.
func (l Law) OptimumOfLoss(loss float64) (Model, error) {
	if !(loss > l.E) {
		return Model{}, l.unreachable(loss, l.E, "no model reaches it")
	}
	a, b := l.Exponents()
	params := math.Pow(l.A/(a*(loss-l.E)), 1/l.Alpha)
	tokens := math.Pow(l.B/(b*(loss-l.E)), 1/l.Beta)
	return l.Model(params, tokens), nil
}

// TokensFor returns the tokens that a model needs to reach a loss.
func (l Law) TokensFor(params, loss float64) (float64, error) {
	least := l.E + l.A*math.Pow(params, -l.Alpha)
	if !(loss > least) {
		return 0, l.unreachable(loss, least, "a model of this size does not reach it with any number of tokens")
	}
	return math.Pow(l.B/(loss-least), 1/l.Beta), nil
}

// ParamsFor returns the size of the model that reaches a loss on the given number of tokens.
func (l Law) ParamsFor(tokens, loss float64) (float64, error) {
	least := l.E + l.B*math.Pow(tokens, -l.Beta)
	if !(loss > least) {
		return 0, l.unreachable(loss, least, "a model of any size does not reach it with so many tokens")
	}
	return math.Pow(l.A/(loss-least), 1/l.Alpha), nil
}

// UnreachableError reports a loss that the law does not reach.
type UnreachableError struct {
	Loss, Least float64 // asked for; the greatest lower bound
	why         string
}

func (e *UnreachableError) Error() string {
	const digits = 6 // digits printed; rounded down, Least itself would be unreachable
	unit := math.Pow(10, math.Floor(math.Log10(max(e.Least, 1e-6)))+1-digits)
	return fmt.Sprintf("a loss of %.*g is out of reach: by this law %s\n  try a loss above %.*g",
		digits, e.Loss, e.why, digits, math.Ceil(e.Least/unit)*unit)
}

func (l Law) unreachable(loss, least float64, why string) error {
	return &UnreachableError{Loss: loss, Least: least, why: why}
}

// check returns an error if a law that was read from a file is invalid.
func (l Law) check() error {
	for _, c := range []struct {
		name         string
		value, least float64
	}{
		{"E", l.E, 0}, {"A", l.A, 0}, {"B", l.B, 0}, {"alpha", l.Alpha, lowest / 2}, {"beta", l.Beta, lowest / 2},
	} {
		if !(c.value >= c.least) || math.IsInf(c.value, 0) {
			return fmt.Errorf("%s is %v", c.name, c.value)
		}
	}
	return nil
}
