package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"anneal/internal/units"
	"anneal/lab"
)

type mixCmd struct {
	DoReMi doremiCmd `cmd:"" name:"doremi" help:"Find mixture weights with a reference and a proxy model (DoReMi, group DRO)."`
	RegMix regmixCmd `cmd:"" name:"regmix" help:"Find mixture weights by regression over many tiny models (RegMix)."`
}

// mixtureArgs are on every search for the weights of a mixture.
type mixtureArgs struct {
	configArgs
	Out    string `required:"" placeholder:"DIR" help:"Directory for the models and mix.json. An interrupted search in DIR is resumed."`
	Budget amount `placeholder:"TOKENS" help:"Tokens of the run that will use the weights, such as 1e9, to count epochs. Default: those of the config."`
	svgFlag
	runThreadsFlag
}

func (a mixtureArgs) options(s *session) lab.MixtureOptions {
	return lab.MixtureOptions{
		Config: a.Config, Overrides: a.Overrides, Out: a.Out, Budget: int64(a.Budget), Threads: int(a.Threads),
		OnPhase: func(what string) { s.notef("%s", what) }, OnProgress: s.trainProgress(0),
	}
}

// printMixture prints the weights found, and the lines for a config.
func (s *session) printMixture(m *lab.Mixture) {
	wide := len("source")
	for _, source := range m.Sources {
		wide = max(wide, len(source.Name))
	}
	s.printf("\n%-*s  %15s  %8s  %8s  %s\n", wide, "source", "tokens", "natural", "found",
		"epochs in "+units.Commas(m.Tokens)+" tokens")
	for _, source := range m.Sources {
		s.printf("%-*s  %15s  %8.4f  %8.4f  %.2f\n",
			wide, source.Name, units.Commas(source.Tokens), source.Natural, source.Weight, source.Epochs)
	}
	s.printf("\nfor a config:\n\n%s\n", m.Config)
}

// closeSearch prints where the weights are, and the command that trains with them.
func (a mixtureArgs) closeSearch(s *session, m *lab.Mixture, elapsed time.Duration) {
	next := append([]string{"anneal", "train", a.Config}, a.Overrides...)
	s.closing(fmt.Sprintf("weights of %d sources", len(m.Sources)), filepath.Join(a.Out, "mix.json"), elapsed,
		command(append(next, "data.weights="+weightsOf(m), "--out", "runs/"+runName(a.Config))...))
}

// weightsOf returns the weights found, for data.weights. They have the digits of those in mix.json.
func weightsOf(m *lab.Mixture) string {
	words := make([]string, len(m.Sources))
	for i, source := range m.Sources {
		words[i] = fmt.Sprintf("%s=%.4g", source.Name, source.Weight)
	}
	return strings.Join(words, " ")
}

// searchError returns the error of a search; a search that a signal interrupted has one that says how to continue.
func searchError(err error) error {
	if errors.Is(err, context.Canceled) {
		return &stopped{"stopped; all runs are saved\n  give the same command again to continue"}
	}
	return err
}

type doremiCmd struct {
	mixtureArgs
	Rate      float64 `default:"1" placeholder:"ETA" help:"How fast weights follow the excess loss."`
	Smoothing float64 `default:"1e-3" placeholder:"C" help:"Share of uniform weights mixed in at each step."`
	Rounds    int     `default:"1" help:"Most rounds. Each round trains its reference model with the weights of the last one; the search stops when the weights no longer change."`
}

func (doremiCmd) Help() string {
	return example("anneal mix doremi examples/tiny.yaml data.mix=code=data/code,asm=data/asm,text=data/text "+
		"--out runs/mix",
		"anneal mix doremi examples/tiny.yaml train.steps=500 data.mix=a=data/a,b=data/b --rounds 3 --out runs/mix "+
			"--budget 1B --svg weights.svg") +
		"\n\nA small model, the reference, is trained on the sources in their natural shares. A second one, " +
		"the proxy, is then trained on all of them\nevenly. The further its loss on a source is above the " +
		"reference's, the more weight the source gets. The result is the mean of these weights.\nIt takes 8/3 of the " +
		"config's training; give it a small model. If it is stopped, give the same command again: it continues."
}

func (c doremiCmd) Run(s *session) error {
	start := time.Now()
	c.remark(s)
	return s.whileTraining(func(ctx context.Context) error {
		r, err := lab.DoReMi(ctx, lab.DoReMiOptions{
			MixtureOptions: c.options(s), Rate: c.Rate, Smoothing: c.Smoothing, Rounds: c.Rounds,
		})
		if err != nil {
			return searchError(err)
		}
		if err := s.draw(r.Chart(), c.SVG); err != nil {
			return err
		}
		for i, round := range r.Rounds[1:] {
			s.printf("round %d moved weights by up to %.4f\n", i+2, round.Moved)
		}
		elapsed := time.Since(start)
		s.printMixture(&r.Mixture)
		c.closeSearch(s, &r.Mixture, elapsed)
		return s.emit(struct {
			*lab.DoReMiResult
			Seconds float64 `json:"seconds"`
		}{r, elapsed.Seconds()})
	})
}

type regmixCmd struct {
	mixtureArgs
	Proxies int      `default:"32" help:"Models to train, at least 10. Run again with a larger number, it adds models to those already trained."`
	Target  []string `placeholder:"NAME" help:"Sources whose held-out loss is minimised. Default: all, equally weighted."`
}

func (regmixCmd) Help() string {
	return example("anneal mix regmix examples/tiny.yaml train.steps=100 "+
		"data.mix=code=data/code,asm=data/asm,text=data/text --proxies 32 --out runs/regmix",
		"anneal mix regmix examples/tiny.yaml train.steps=100 data.mix=a=data/a,b=data/b --target b --out runs/regmix "+
			"--svg regression.svg") +
		"\n\nEach proxy is trained on another random mixture around the natural one. A regression from weights to " +
		"held-out loss predicts the\nloss of 100,000 mixtures; the result is the mean of the best hundred. " +
		"Proxies left out of the fit show how well the regression predicts:\nif the rank correlation is well below " +
		"0.8, use more proxies or more steps. If it is stopped, give the same command again: it continues."
}

func (c regmixCmd) Run(s *session) error {
	start := time.Now()
	c.remark(s)
	return s.whileTraining(func(ctx context.Context) error {
		first, show := -1, s.status.progress("proxies",
			units.Commas, func(rate float64) string { return fmt.Sprintf("%.1f a minute", 60*rate) })
		r, err := lab.RegMix(ctx, lab.RegMixOptions{MixtureOptions: c.options(s), Proxies: c.Proxies, Target: c.Target,
			OnProxy: func(done, all int) {
				if first < 0 {
					first = done // an earlier call trained these proxies
				}
				show(int64(done-first), int64(all-first))
			}})
		if err != nil {
			return searchError(err)
		}
		if err := s.draw(r.Chart(), c.SVG); err != nil {
			return err
		}
		s.printf("%s regression over %d proxies: rank correlation %.2f on proxies left out of the fit, "+
			"error %.4f bits/byte\n", r.Family, len(r.Proxies), r.Rank, r.Error)
		s.printf("predicted: %.4f bits/byte with the weights found, %.4f with the initial weights\n",
			r.Predicted, r.AtStart)
		elapsed := time.Since(start)
		s.printMixture(&r.Mixture)
		c.closeSearch(s, &r.Mixture, elapsed)
		return s.emit(struct {
			*lab.RegMixResult
			Seconds float64 `json:"seconds"`
		}{r, elapsed.Seconds()})
	})
}
