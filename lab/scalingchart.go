package lab

import (
	"fmt"
	"math"
	"slices"

	"anneal/chart"
	"anneal/scaling"
)

// ScalingChart draws loss against compute: the points of a fit, the loss of compute-optimal models by its law with the
// interval, and the models in question. It extends to a hundred times the compute of the points.
func ScalingChart(f *scaling.Fit, asked ...scaling.Model) *chart.Chart {
	points := chart.Series{Name: "a trained model", Style: chart.Points}
	low, high := math.Inf(1), f.Reach()*100
	for _, p := range f.Points {
		flops := scaling.Training(p.Params, p.Tokens)
		points.X, points.Y = append(points.X, flops), append(points.Y, p.Loss)
		low = min(low, flops)
	}
	const beyond = 30 // factor of compute by which the law is drawn around the models in question
	for _, m := range asked {
		low, high = min(low, m.FLOPs/beyond), max(high, m.FLOPs*beyond)
	}
	best := chart.Series{Name: "compute-optimal by the law"}
	edge := chart.Series{Name: fmt.Sprintf("%.0f %% interval", 100*scaling.Confidence)}
	const steps = 60
	var back []chart.Mark
	for i := range steps + 1 {
		flops := low * math.Pow(high/low, float64(i)/steps)
		best.X, best.Y = append(best.X, flops), append(best.Y, f.Law.Optimum(flops).Loss)
		if in := f.Interval(func(l scaling.Law) float64 { return l.Optimum(flops).Loss }); in != nil {
			edge.X, edge.Y = append(edge.X, flops), append(edge.Y, in.Low)
			back = append(back, chart.Mark{X: flops, Y: in.High})
		}
	}
	for _, m := range slices.Backward(back) { // one line around the interval
		edge.X, edge.Y = append(edge.X, m.X), append(edge.Y, m.Y)
	}
	c := &chart.Chart{
		Title: "Loss by training compute",
		X:     chart.Axis{Label: "training compute, 6·N·D (FLOPs)", Log: true},
		Y:     chart.Axis{Label: "loss (nats per token)"},
	}
	for _, s := range []chart.Series{best, points, edge} {
		if len(s.X) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	for _, m := range asked {
		c.Marks = append(c.Marks, chart.Mark{
			Name: fmt.Sprintf("%.3g parameters, %.3g tokens: %.3f", m.Params, m.Tokens, m.Loss), X: m.FLOPs, Y: m.Loss,
		})
	}
	return c
}
