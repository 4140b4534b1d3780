package main

import (
	"fmt"
	"math"

	"anneal/internal/units"
	"anneal/scaling"
)

type scalingCmd struct {
	Run     scalingRunCmd     `cmd:"" help:"Train a ladder of small models within a budget of time, for a fit."`
	Fit     scalingFitCmd     `cmd:"" help:"Fit a scaling law to the losses of trained models."`
	Predict scalingPredictCmd `cmd:"" help:"Predict a model's loss, or the best model for a budget or a loss."`
}

// quantity is a number of parameters, tokens or FLOPs on the command line, such as 1e21, 7B or 2T.
type quantity float64

func (q *quantity) UnmarshalText(text []byte) error {
	x, err := units.Number(string(text))
	if err != nil || !(x >= 1 && x <= 1e50) {
		return fmt.Errorf("%q is not a number from 1 to 1e50; try 1e21, 7B or 2T", text)
	}
	*q = quantity(x)
	return nil
}

// nats is a loss in nats per token on the command line.
type nats float64

func (n *nats) UnmarshalText(text []byte) error {
	x, err := units.Number(string(text))
	if err != nil || !(x > 0 && x <= 1e50) {
		return fmt.Errorf("%q is not a loss above 0, up to 1e50 nats per token; try 2.1", text)
	}
	*n = nats(x)
	return nil
}

// short writes a large number with three digits and a suffix, such as 2.78B, or, if no suffix is large enough, as
// 1.00e+21.
func short(x float64) string {
	const largest = 1e15
	switch {
	case math.IsInf(x, 1):
		return "endless"
	case x >= largest:
		return fmt.Sprintf("%.2e", x)
	case x < 999.5:
		return fmt.Sprintf("%.3g", x)
	}
	multiples := "KMBT"
	i := 0
	for x /= 1000; x >= 999.5 && i < len(multiples)-1; i++ {
		x /= 1000
	}
	decimals := max(0, 2-int(math.Log10(x)))
	return fmt.Sprintf("%.*f%c", decimals, x, multiples[i])
}

// flops writes FLOPs.
func flops(x float64) string { return fmt.Sprintf("%.2e", x) }

// within writes an interval in the format of its quantity; "" if there is none.
func within(i *scaling.Interval, form func(float64) string) string {
	if i == nil {
		return ""
	}
	if math.IsInf(i.High, 1) {
		return form(i.Low) + " to endless"
	}
	return form(i.Low) + " to " + form(i.High)
}

// format returns a number format for within.
func format(f string) func(float64) string {
	return func(x float64) string { return fmt.Sprintf(f, x) }
}

// intervalJSON returns an interval for JSON; null if there is none.
func intervalJSON(i *scaling.Interval) any {
	if i == nil {
		return nil
	}
	return map[string]number{"low": number(i.Low), "high": number(i.High)}
}
