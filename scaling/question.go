package scaling

import (
	"errors"
	"fmt"
	"math"
)

// A Question holds the known quantities of a model to train; 0 is unknown. If one of the four is known, the answer is
// the compute-optimal model; two determine the model.
type Question struct {
	Params, Tokens, FLOPs, Loss float64

	Unique float64 // available different tokens; 0 means as many as are read
}

// The questions that have no answer.
var (
	ErrNoQuestion   = errors.New("nothing is asked: give FLOPs, parameters, tokens or a loss, or two of them")
	ErrOverdefined  = errors.New("more than two of FLOPs, parameters, tokens and loss are given: two define a model")
	ErrTwoModels    = errors.New("FLOPs with a loss leave two models, a small one and a large one: give parameters too")
	ErrRepeatedLoss = errors.New("different tokens go with FLOPs, or with two of FLOPs, parameters and tokens")
)

// Check returns an error that explains why the question has no answer by any law; nil if it has one.
func (q Question) Check() error {
	given := 0
	for _, v := range []float64{q.Params, q.Tokens, q.FLOPs, q.Loss} {
		if v > 0 {
			given++
		}
	}
	switch {
	case given == 0:
		return ErrNoQuestion
	case given > 2:
		return ErrOverdefined
	case q.FLOPs > 0 && q.Loss > 0:
		return ErrTwoModels
	case q.Unique > 0 && (q.Loss > 0 || given == 1 && q.FLOPs == 0):
		return ErrRepeatedLoss
	}
	return nil
}

// Epochs returns how often a model reads each different token: 1 unless they are fewer than it reads.
func (q Question) Epochs(m Model) float64 {
	if q.Unique == 0 {
		return 1
	}
	return max(1, m.Tokens/q.Unique)
}

// ErrTooFar is the error of a question whose answer has no finite numbers.
var ErrTooFar = errors.New("the answer is too far from the points of the fit: it has no finite numbers")

// ErrTooSmall is the error of a question whose answer has less than one parameter or one token.
var ErrTooSmall = errors.New("no model is that small")

// Answer returns the model that a law gives. A question that Check refuses has no answer. With ErrTooSmall it returns
// the model, too.
func (l Law) Answer(q Question) (Model, error) {
	if err := q.Check(); err != nil {
		return Model{}, err
	}
	m, err := l.answer(q)
	for _, x := range []float64{m.Params, m.Tokens, m.FLOPs, m.Loss} {
		if err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			err = ErrTooFar
		}
	}
	const one = 1 - 1e-9 // as rounded
	if err == nil && (m.Params < one || m.Tokens < one) {
		err = fmt.Errorf("%w: by this law the answer has %.3g parameters and %.3g tokens\n"+
			"  try more FLOPs, parameters or tokens, or a lower loss", ErrTooSmall, m.Params, m.Tokens)
	}
	return m, err
}

func (l Law) answer(q Question) (Model, error) {
	unique := q.Unique
	if unique == 0 {
		unique = math.Inf(1)
	}
	switch {
	case q.Loss > 0 && q.Params > 0:
		tokens, err := l.TokensFor(q.Params, q.Loss)
		return l.Model(q.Params, tokens), err
	case q.Loss > 0 && q.Tokens > 0:
		params, err := l.ParamsFor(q.Tokens, q.Loss)
		return l.Model(params, q.Tokens), err
	case q.Loss > 0:
		return l.OptimumOfLoss(q.Loss)
	case q.Params > 0 && q.Tokens > 0:
		return l.Repeated(q.Params, q.Tokens, unique), nil
	case q.Params > 0 && q.FLOPs > 0:
		return l.Repeated(q.Params, q.FLOPs/flopsPerToken/q.Params, unique), nil
	case q.Tokens > 0 && q.FLOPs > 0:
		return l.Repeated(q.FLOPs/flopsPerToken/q.Tokens, q.Tokens, unique), nil
	case q.Params > 0:
		return l.OptimumOfSize(q.Params), nil
	case q.Tokens > 0:
		return l.OptimumOfTokens(q.Tokens), nil
	default:
		return l.RepeatedOptimum(q.FLOPs, unique), nil
	}
}
