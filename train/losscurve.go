package train

import (
	"encoding/json"
	"fmt"
	"os"

	"anneal/internal/fileio"
)

// A LossCurve holds the losses of a run's steps, in order; both slices have the same length.
type LossCurve struct {
	Tokens []float64 // seen after the step
	Loss   []float64 // nats per token of its batch, before the update
}

// Losses reads the loss of every step whose update is part of the weights of the run in dir. Skipped steps are
// omitted. warn takes what is missing.
func Losses(dir string, warn func(string)) (LossCurve, error) {
	var c LossCurve
	err := runMetrics(dir, warn, func(line []byte) error {
		var l struct {
			Tokens  float64
			Loss    *float64
			Skipped bool
			Rewound bool
		}
		err := json.Unmarshal(line, &l)
		if err == nil && l.Loss != nil && !l.Skipped && !l.Rewound {
			c.Tokens, c.Loss = append(c.Tokens, l.Tokens), append(c.Loss, *l.Loss)
		}
		return err
	})
	return c, err
}

// runMetrics calls f with every line of a run's metrics. A line that is unreadable, or that f refuses, is left out;
// warn takes their numbers and the steps that are missing.
func runMetrics(dir string, warn func(string), f func(line []byte) error) error {
	path := runDir(dir).metrics()
	var c metricsCheck
	_, err := os.Stat(path)
	if err == nil {
		err = eachMetricsLine(path, func(line []byte) error {
			if l, ok := c.read(line); ok && f(line) != nil {
				c.refuse(l)
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

// DomainWeights reads the domain weights after every step of the run in dir, which must weigh domains:
// [step][domain]. warn takes what is missing.
func DomainWeights(dir string, warn func(string)) ([][]float64, error) {
	var weights [][]float64
	err := runMetrics(dir, warn, func(line []byte) error {
		var l struct {
			Weights []float64 `json:"domain_weights"`
			Rewound bool
		}
		err := json.Unmarshal(line, &l)
		if err == nil && l.Weights != nil && !l.Rewound {
			weights = append(weights, l.Weights)
		}
		return err
	})
	return weights, err
}
