package use

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"anneal/attention"
	"anneal/config"
	"anneal/model"
	"anneal/nn"
)

// Reach changes the context of a run's model. The zero value changes nothing.
type Reach struct {
	Context     string // tokens, such as 4096, or a multiple of the training context, such as 4x
	RopeScaling string // like model.rope_scaling; the original context is that of the run
}

// apply changes the model of a run's configuration and returns the context to set after the model is loaded. The
// changes before loading do not affect anything in a checkpoint.
func (r Reach) apply(cfg *config.Config) (context int, err error) {
	m := &cfg.Model
	trained := m.Context
	if r.RopeScaling != "" {
		if err := r.scale(cfg); err != nil {
			return 0, err
		}
	}
	if r.Context == "" {
		return trained, nil
	}
	if context, err = ContextOf(r.Context, trained); err != nil {
		return 0, err
	}
	if err := checkReach(m, context); err != nil {
		return 0, err
	}
	// limits the tokens of a batch to those of training
	cfg.Train.MicroBatch = max(cfg.Train.MicroBatch*trained/context, 1)
	switch {
	case !m.Positions.Learned():
		m.Context = context
	case context > trained:
		return 0, config.Problem{
			Key: "model.context", Message: fmt.Sprintf("a context of %d exceeds the %d positions that the model "+
				"has learned", context, trained), At: "--context",
			Try: fmt.Sprintf("a context of at most %d, or a model with model.positions = rope or alibi", trained),
		}
	}
	return context, nil
}

// checkReach returns an error if the layers' patterns cannot be laid out for a context.
func checkReach(m *model.Config, context int) error {
	err := attention.CheckLayers(m.Attention, context, m.Heads, m.Layers)
	if e := new(attention.Error); errors.As(err, &e) {
		return config.Problem{
			Key: "model.context", Message: fmt.Sprintf("a context of %d: %s", context, e.Message), At: "--context",
			Try: "a shorter context",
		}
	}
	return err
}

// scale sets the scaling of the rotary positions.
func (r Reach) scale(cfg *config.Config) error {
	m := &cfg.Model
	s, err := nn.ParseRoPEScaling(r.RopeScaling)
	if err != nil {
		return config.Problem{
			Key: "model.rope_scaling", Message: err.Error(), At: "--rope-scaling", Try: "yarn:4, or none",
		}
	}
	if !m.HasPositions("rope") {
		return config.Problem{
			Key: "model.rope_scaling", Message: fmt.Sprintf("the RoPE scaling %s has no effect: the run has %s",
				s, cfg.TurnsNothing()),
			At: "--rope-scaling", Try: "removing it",
		}
	}
	if err := s.CheckPairs(m.RotatedDim()); err != nil {
		return config.Problem{
			Key: "model.rope_scaling", Message: err.Error(), At: "--rope-scaling", Try: "yarn:4, or none",
		}
	}
	m.RopeScaling = s
	switch {
	case !s.NeedsOriginal():
		m.RopeOriginalContext = 0
	case m.RopeOriginalContext == 0:
		m.RopeOriginalContext = m.Context
	}
	return nil
}

// ContextOf parses a context of Reach: tokens, or a multiple of the training context. Errors are config.Problems.
func ContextOf(text string, trained int) (int, error) {
	number, multiple := strings.CutSuffix(text, "x")
	n, err := strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64)
	if multiple {
		n *= float64(trained)
	}
	if err != nil || !(n >= 2 && n <= 1<<20) || n != float64(int(n)) {
		return 0, config.Problem{
			Key: "model.context", Message: fmt.Sprintf("%q is not a context of 2 to %d tokens", text, 1<<20),
			At: "--context",
			Try: fmt.Sprintf("a number of tokens, such as %d, or a multiple of the training context, such as 4x",
				4*trained),
		}
	}
	return int(n), nil
}
