package run

import (
	"encoding/json"
	"fmt"
	"math"
	"os"

	"anneal/internal/fileio"
	"anneal/train"
)

// A LossCurve holds the losses of a run's steps, in order; both slices have the same length.
type LossCurve struct {
	Tokens []float64 // seen after the step
	Loss   []float64 // nats per token of its batch, before the update
}

// Losses reads the loss of every step whose update is part of the weights of the run in dir. Skipped steps are
// omitted. warn receives a message about missing steps.
func Losses(dir string, warn func(string)) (LossCurve, error) {
	var c LossCurve
	err := runMetrics(dir, warn, func(e train.Event) {
		if !math.IsNaN(e.Loss) && !e.Skipped {
			c.Tokens, c.Loss = append(c.Tokens, float64(e.Tokens)), append(c.Loss, e.Loss)
		}
	})
	return c, err
}

// Evaluations reads the steps of the run in dir after which it was evaluated, in order. warn receives a message about
// missing steps.
func Evaluations(dir string, warn func(string)) (list []train.Event, err error) {
	err = runMetrics(dir, warn, func(e train.Event) {
		if e.Evaluated() {
			list = append(list, e)
		}
	})
	return list, err
}

// runMetrics calls f with every step of a run's current history. Unreadable lines are left out; warn receives their
// numbers and the missing steps.
func runMetrics(dir string, warn func(string), f func(train.Event)) error {
	path := runDir(dir).metrics()
	var c metricsCheck
	_, err := os.Stat(path)
	if err == nil {
		err = eachLine(path, func(line []byte) error {
			l, ok := c.read(line)
			if !ok {
				return nil
			}
			var e train.Event
			if err := json.Unmarshal(line, &e); err != nil {
				c.refuse(l)
			} else if !e.Rewound {
				f(e)
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("cannot read metrics: %s: %w", path, fileio.Cause(err))
	}
	if text := c.faults(path); text != "" {
		warn(text)
	}
	return nil
}

// DomainWeights reads the domain weights after every step of the run in dir, which must weigh domains: [step][domain].
// warn receives a message about missing steps.
func DomainWeights(dir string, warn func(string)) ([][]float64, error) {
	var weights [][]float64
	err := runMetrics(dir, warn, func(e train.Event) {
		if e.DomainWeights != nil {
			weights = append(weights, e.DomainWeights)
		}
	})
	return weights, err
}
