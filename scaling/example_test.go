package scaling_test

import (
	"fmt"

	"anneal/scaling"
)

// A law is fitted to the losses of small models, and asked for the model that a larger budget should train.
func Example() {
	truth := scaling.Law{E: 1.7, A: 400, B: 1800, Alpha: 0.34, Beta: 0.36}
	var points []scaling.Point // of models that were trained
	for _, params := range []float64{1e6, 3e6, 1e7, 3e7} {
		for _, tokens := range []float64{2e7, 1e8, 5e8} {
			points = append(points, scaling.Point{Params: params, Tokens: tokens, Loss: truth.Loss(params, tokens)})
		}
	}
	fit, err := scaling.FitPoints(points, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	model, err := fit.Law.Answer(scaling.Question{FLOPs: 1e19})
	fmt.Printf("%.0fM parameters, %.1fB tokens, loss %.2f %v\n",
		model.Params/1e6, model.Tokens/1e9, model.Loss, err)
	// Output: 253M parameters, 6.6B tokens, loss 2.78 <nil>
}
