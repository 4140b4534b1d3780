package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"anneal/lab"
)

type mupSweepCmd struct {
	configArgs
	Widths   []int     `placeholder:"D" help:"Values of model.dim. Default: four, from about 64, each twice the last."`
	Depths   []int     `placeholder:"L" help:"Values of model.layers instead, at the width of the config."`
	Rates    []float64 `placeholder:"LR" help:"Values of optimizer.lr. Default: seven, from 1/8 to 8 times that of the config."`
	Standard bool      `help:"Use the standard parametrisation instead, whose best rate moves."`
	svgFlag
}

func (mupSweepCmd) Help() string {
	return example("anneal mup sweep examples/mup.yaml --widths 32,64,128,256 --rates 0.004,0.008,0.016,0.032 --svg "+
		"transfer.svg", "anneal mup sweep examples/mup.yaml --depths 2,4,8,16") +
		"\n\nEvery width or depth is trained at every rate for train.steps steps; the smallest is the base model. " +
		"No run is kept."
}

func (c mupSweepCmd) Run(s *session) error {
	start := time.Now()
	c.remark(s)
	o := lab.TransferOptions{
		Family: lab.Family{
			Config: c.Config, Overrides: c.Overrides, Widths: c.Widths, Depths: c.Depths, Standard: c.Standard,
		},
		Rates: c.Rates,
	}
	o.OnRun = func(text string) { s.status.update(func(int) string { return text }) }
	return s.whileTraining(func(ctx context.Context) error {
		t, err := lab.SweepRates(ctx, o)
		if err != nil {
			return err
		}
		printTransfer(s, t)
		if err := s.draw(t.Chart(), c.SVG); err != nil {
			return err
		}
		elapsed := time.Since(start)
		s.closing(fmt.Sprintf("%d models trained, nothing written", len(t.Sizes)*len(t.Rates)), "", elapsed, c.next(t))
		result := transferJSON(t)
		result["seconds"] = elapsed.Seconds()
		return s.emit(result)
	})
}

// next returns the command that trains the largest model at the best rate of the smallest, unless all runs of the
// smallest failed.
func (c mupSweepCmd) next(t *lab.Transfer) string {
	if math.IsNaN(t.Best[0]) {
		return ""
	}
	words := slices.Concat([]string{"anneal", "train", c.Config}, c.Overrides, t.Largest)
	return command(append(words, fmt.Sprintf("optimizer.lr=%.3g", t.Best[0]), "--out", "runs/"+runName(c.Config))...)
}

// printTransfer prints the table of a sweep; the best loss of each width has a star.
func printTransfer(s *session, t *lab.Transfer) {
	s.printf("%s: validation loss after %d steps (nats per token)\n%-10s",
		lab.Parametrisation(t.Standard), t.Steps, "rate")
	for _, size := range t.Sizes {
		s.printf("  %s %-5d", t.Axis, size)
	}
	s.printf("\n")
	for j, rate := range t.Rates {
		s.printf("%-10.3g", rate)
		for i := range t.Sizes {
			s.printf("  %-11s", transferCell(t, i, j))
		}
		s.printf("\n")
	}
	s.printf("best rate ")
	for _, best := range t.Best {
		s.printf("  %-11.3g", best)
	}
	s.printf("\nfrom %s %d to %d the best rate changes by a factor of %.3g\n",
		t.Axis, t.Sizes[0], t.Sizes[len(t.Sizes)-1], t.Shift())
}

func transferCell(t *lab.Transfer, i, j int) string {
	switch loss := t.Loss[i][j]; {
	case math.IsNaN(loss):
		return "failed"
	case t.Rates[j] == t.Best[i]:
		return fmt.Sprintf("%.4f *", loss)
	default:
		return fmt.Sprintf("%.4f", loss)
	}
}

func transferJSON(t *lab.Transfer) map[string]any {
	loss := make([][]number, len(t.Loss))
	best := make([]number, len(t.Best))
	for i := range t.Loss {
		for _, l := range t.Loss[i] {
			loss[i] = append(loss[i], number(l))
		}
		best[i] = number(t.Best[i])
	}
	return map[string]any{
		"standard": t.Standard, t.Axis + "s": t.Sizes, "rates": t.Rates, "steps": t.Steps, "val_loss": loss,
		"best":  best,
		"shift": number(t.Shift()),
	}
}
