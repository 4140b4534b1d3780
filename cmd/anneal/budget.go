package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"anneal/bench"
	"anneal/comm"
	"anneal/config"
	"anneal/dataset"
	"anneal/internal/machine"
	"anneal/internal/units"
	"anneal/lab"
	"anneal/plan"
	"anneal/train"
)

// completeByBudget returns a function that derives a config's open keys from the budget. If there are several
// processes, rank 0 derives the keys from the speed of all, and the others set the same values.
func (c *trainCmd) completeByBudget(s *session) func(*config.Config) error {
	return func(cfg *config.Config) error {
		err := checkBudget(*c.Budget)
		if err == nil {
			err = checkBudgetData(cfg)
		}
		if err = s.together(err); err != nil {
			return err
		}
		memory := int64(c.Memory)
		if memory == 0 && s.world.Size() > 1 && cfg.Device == "cpu" {
			if memory, err = leastMemory(s.world); err != nil {
				return err
			}
		}
		s.notef("measuring how fast models of several sizes train")
		err = s.untilSignal(func(ctx context.Context) error {
			var err error
			if s.world.Rank() > 0 {
				err = c.followBudget(ctx, s, cfg)
			} else {
				err = c.deriveByBudget(ctx, s, cfg, memory)
			}
			if err == nil || ctx.Err() == nil {
				return err
			}
			if s.world.Rank() > 0 {
				s.told = nil // rank 0 reports it
			}
			return context.Cause(ctx) // the signal is the cause, not the loss of a rank that it reached first
		})
		if errors.Is(err, plan.ErrBudget) {
			return asUsage(err)
		}
		return err
	}
}

// roomOf is the memory that a host has for its ranks, as read by one of them.
type roomOf struct {
	Host string
	Free int64 // bytes; 0 if the system does not say
}

// leastMemory returns the bytes that every rank of a world may take, 0 if unknown. All ranks call it.
func leastMemory(world comm.Comm) (int64, error) {
	host, err := os.Hostname()
	if err != nil {
		return 0, err
	}
	mine, err := json.Marshal(roomOf{host, machine.ReadMemory().Available})
	if err != nil {
		return 0, err
	}
	all, err := world.Share(mine)
	if err != nil {
		return 0, err
	}
	rooms := make([]roomOf, len(all))
	for i, text := range all {
		if err := json.Unmarshal(text, &rooms[i]); err != nil {
			return 0, err
		}
	}
	return leastRoom(rooms), nil
}

// leastRoom divides the memory of each host among its ranks, and returns the smallest share.
func leastRoom(rooms []roomOf) (least int64) {
	ranks, free := map[string]int64{}, map[string]int64{}
	for _, r := range rooms {
		if ranks[r.Host]++; ranks[r.Host] == 1 || r.Free < free[r.Host] {
			free[r.Host] = r.Free
		}
	}
	for host, n := range ranks {
		if share := free[host] / n; share > 0 && (least == 0 || share < least) {
			least = share
		}
	}
	return least
}

// deriveByBudget derives the open keys and sends them to the other processes. memory is the bytes of a rank; 0 stands
// for the memory of the machine.
func (c *trainCmd) deriveByBudget(ctx context.Context, s *session, cfg *config.Config, memory int64) error {
	all, broken := bench.Ensemble{World: s.world}, false
	err := func() error {
		dev, err := train.OpenDevice(cfg, "", 0)
		if err != nil {
			return err
		}
		defer dev.Close()
		b, err := lab.NewBudget(ctx, c.Budget.duration(), cfg, dev, memory)
		if err != nil {
			return asData(err)
		}
		if s.world.Size() > 1 {
			b.Speed = func(cfg *config.Config) (float64, string, error) {
				speed, err := all.Speed(ctx, cfg)
				broken = err != nil
				return speed, "measured on all processes", err
			}
		}
		b.Speed = tellSpeeds(s, b.Speed)
		c.budgeted, err = b.Derive(cfg)
		return err
	}()
	if s.world.Size() == 1 || broken {
		return err
	}
	return errors.Join(err, all.End(c.budgeted))
}

// tellSpeeds shows each speed as soon as it is measured, because large models take minutes.
func tellSpeeds(s *session, speed func(*config.Config) (float64, string, error)) func(*config.Config) (float64, string,
	error) {
	return func(cfg *config.Config) (float64, string, error) {
		tokens, source, err := speed(cfg)
		if m := cfg.Model; err == nil {
			s.notef("  %s of width %d, context %d: %s tokens/s", units.Count(m.Layers, "layer"), m.Dim, m.Context,
				units.Commas(int64(tokens)))
		}
		return tokens, source, err
	}
}

// errUnderived is the error of the other ranks when rank 0, which reports its own error, has derived nothing.
var errUnderived = errors.New("rank 0 has derived nothing from the budget")

// followBudget takes part in rank 0's measurements and sets the keys that rank 0 derives.
func (c *trainCmd) followBudget(ctx context.Context, s *session, cfg *config.Config) error {
	text, err := bench.Ensemble{World: s.world}.Follow(ctx)
	if err == nil {
		err = json.Unmarshal(text, &c.budgeted)
	}
	if err == nil && c.budgeted == nil {
		err = errUnderived
	}
	if err != nil {
		return err
	}
	c.budgeted.Apply(cfg)
	return nil
}

// checkBudgetData refuses a config for which no run can be sized.
func checkBudgetData(cfg *config.Config) error {
	switch {
	case cfg.Parallel.Shared() > 1 || cfg.Parallel.Outer.On():
		return &usageError{"--budget knows ranks that share the sequences of a step, not the tensors, tokens " +
			"or layers of a model, and no outer groups",
			"remove parallel.tensor, parallel.context, parallel.pipeline and parallel.outer.groups"}
	case !cfg.HasData():
		return &usageError{"--budget needs the text to train on: data.path is missing",
			"try data.path=DIR, a directory that `anneal data build` made"}
	}
	sources, err := cfg.Sources()
	for _, x := range sources {
		if !dataset.Exists(x.Path) {
			return &usageError{x.Path + " holds no data set",
				"make one with `anneal data build --tokenizer TOKENIZER.json --out " + x.Path + " TEXT`"}
		}
	}
	return err
}

// checkBudget refuses a time that no run can have.
func checkBudget(m inMinutes) error {
	if !(m > 0) || math.IsInf(float64(m), 0) {
		return &usageError{"--budget must be a time above 0", "try --budget 30m"}
	}
	return nil
}

// printBudget prints every derived value with its rule.
func printBudget(s *session, b *plan.Budgeted) {
	if b == nil {
		return
	}
	for _, d := range b.Derived {
		s.prosef("#   ", "# %s = %s, why: %s (%s)\n", d.Key, d.Value, d.Rule, d.Source)
	}
	p := b.Predicted
	s.prosef("#   ", "# predicted: %s, %s, %s of memory\n", p.Quality(),
		time.Duration(p.Seconds*float64(time.Second)).Round(time.Second), memorySize(p.MemoryBytes))
	switch {
	case p.Epochs > 1.01*b.MostEpochs:
		s.warn(fmt.Sprintf("the text is read %.0f times: models that read so much text more than some %.0f times "+
			"gained nothing or got worse on other text (docs/budget.md)\n  add text, or give fewer steps",
			p.Epochs, b.MostEpochs))
	case b.ReadsEnough:
		s.prosef("#   ", "# the run ends before the budget: reading so short a text more often makes models worse\n"+
			"#   add text, or set train.steps\n")
	}
}

// dryRunBudget prints what the run needs, and emits the values derived from the budget.
func dryRunBudget(s *session, cfg *config.Config, memory int64, b *plan.Budgeted) error {
	p, err := foresee(cfg, memory)
	if err != nil {
		return err
	}
	p.Untimed = "" // the budget was measured, and says how long the run takes
	printNeeds(s, cfg, p)
	if err := unfitBeside(p, b); err != nil {
		return err
	}
	return s.emit(b)
}
