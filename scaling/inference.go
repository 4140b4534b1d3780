package scaling

import (
	"fmt"
	"math"
)

// servingPerToken is the FLOPs per token and parameter when a model is used: the forward part of training.
const servingPerToken = 2

// Serving returns the FLOPs of using a model on S tokens, read or written: 2·N·S.
func Serving(params, served float64) float64 { return servingPerToken * params * served }

// Inference compares the model that is cheapest over its life with the compute-optimal one of the same loss.
type Inference struct {
	Model          // trained beyond its compute optimum
	Served float64 `json:"served_tokens"`
	Total  float64 `json:"total_flops"` // training and serving

	Chinchilla      Model   `json:"compute_optimal"`             // same loss, fewest training FLOPs
	ChinchillaTotal float64 `json:"compute_optimal_total_flops"` // its training and serving
	// how much lower the loss of a compute-optimal model with the same training FLOPs is, in nats per token
	Penalty float64 `json:"loss_penalty"`
}

// ForServing returns the model that reaches a loss with the fewest FLOPs for training and for serving S tokens
// together (Sardana et al. 2024, arXiv 2401.00448): it minimises 6·N·D + 2·N·S with L(N, D) = loss. With S = 0 this is
// the compute-optimal model; with larger S the model is smaller and reads more tokens per parameter.
func (l Law) ForServing(loss, served float64) (Inference, error) {
	if !(served >= 0) {
		return Inference{}, fmt.Errorf("%v tokens to serve: must be 0 or more", served)
	}
	best, err := l.OptimumOfLoss(loss)
	if err != nil {
		return Inference{}, err
	}
	least := math.Log(l.A/(loss-l.E)) / l.Alpha // where D is endless
	total := func(logParams float64) float64 {
		n := math.Exp(logParams)
		tokens, err := l.TokensFor(n, loss)
		if err != nil {
			return math.Inf(1)
		}
		return Training(n, tokens) + Serving(n, served)
	}
	params := best.Params
	if served > 0 {
		params = math.Exp(goldenSection(total, least, math.Log(best.Params)))
	}
	tokens, err := l.TokensFor(params, loss)
	if err != nil {
		return Inference{}, err
	}
	m := l.Model(params, tokens)
	return Inference{
		Model: m, Served: served, Total: m.FLOPs + Serving(params, served),
		Chinchilla: best, ChinchillaTotal: best.FLOPs + Serving(best.Params, served),
		Penalty: m.Loss - l.Optimum(m.FLOPs).Loss,
	}, nil
}
