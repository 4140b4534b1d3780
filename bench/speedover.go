package bench

import (
	"context"
	"encoding/json"

	"anneal/comm"
	"anneal/config"
)

// An Ensemble measures configurations on all ranks of a world, which are processes. Rank 0 chooses them (Speed) and
// finally sends a result (End); the other ranks follow (Follow).
type Ensemble struct{ World comm.Comm }

// an order is a message of rank 0: a configuration to measure, or the end.
type order struct {
	Config []byte          `json:"config,omitempty"`
	End    json.RawMessage `json:"end,omitempty"`
}

// Speed is the function Speed with the ranks of the world, each a process with the threads that a run would give it.
// Only rank 0 calls it.
func (e Ensemble) Speed(ctx context.Context, cfg *config.Config) (float64, error) {
	if err := e.say(order{Config: cfg.YAML()}); err != nil {
		return 0, err
	}
	return e.measure(ctx, cfg)
}

// End ends Follow on the other ranks, where it returns the value as JSON. Only rank 0 calls it.
func (e Ensemble) End(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return e.say(order{End: text})
}

func (e Ensemble) say(o order) error {
	text, err := json.Marshal(o)
	if err == nil {
		_, err = e.World.Share(text)
	}
	return err
}

// Follow measures the configurations of rank 0 until rank 0 calls End, and returns the value of End.
func (e Ensemble) Follow(ctx context.Context) (value []byte, err error) {
	for {
		all, err := e.World.Share(nil)
		if err != nil {
			return nil, err
		}
		var o order
		if err := json.Unmarshal(all[0], &o); err != nil {
			return nil, err
		}
		if o.Config == nil {
			return o.End, nil
		}
		cfg, err := config.Read(o.Config)
		if err != nil {
			return nil, err
		}
		if _, err := e.measure(ctx, cfg); err != nil {
			return nil, err
		}
	}
}

// measure makes steps on all ranks and returns tokens per second. If this rank fails, it ends the world, because other
// ranks wait in a step.
func (e Ensemble) measure(ctx context.Context, cfg *config.Config) (speed float64, err error) {
	defer func() {
		if err != nil {
			e.World.Abort(err)
		}
	}()
	beside, err := ranksHere(e.World)
	if err != nil {
		return 0, err
	}
	threads := cfg.Threads // of a process, if the configuration sets them
	if threads == 0 {
		if threads, err = threadsOfRank(cfg, beside); err != nil {
			return 0, err
		}
	}
	steps, err := speedSteps(cfg)
	if err != nil {
		return 0, err
	}
	c := &RanksCase{Ranks: e.World.Size(), Threads: threads, steps: steps}
	m, err := apart(ctx, cfg, c, e.World, 0)
	if err != nil {
		return 0, err
	}
	return float64(cfg.Train.BatchTokens) / medianOf(m.Times) * 1e3, nil
}
