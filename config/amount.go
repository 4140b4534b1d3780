package config

import (
	"fmt"
	"math"
	"strings"

	"anneal/internal/units"
)

// amount is a length of a run: in steps, in percent of its steps, or in tokens.
type amount struct {
	value float64
	unit  string // "steps", "%" or "tokens"
	text  string // as it was given
}

// parseAmount reads 200, "1 step", "2K steps", "2%" and "1.5M tokens".
func parseAmount(text string) (amount, error) {
	wrong := fmt.Errorf("%q is not a number of steps, such as 200, a part of the run, such as 2%%, or an amount of "+
		"tokens, such as 1M tokens", text)
	number, unit, bare := strings.TrimSpace(text), "steps", false
	switch {
	case strings.HasSuffix(number, "%"):
		number, unit = strings.TrimSuffix(number, "%"), "%"
	case strings.HasSuffix(number, "token"), strings.HasSuffix(number, "tokens"):
		number, unit = strings.TrimSuffix(strings.TrimSuffix(number, "s"), "token"), "tokens"
	default:
		steps, named := strings.CutSuffix(strings.TrimSuffix(number, "s"), "step")
		if bare = !named; named {
			number = steps
		}
	}
	value, ok := quantity(number, unit != "%")
	if ok && bare && strings.ContainsAny(number, "KkMmBbGgTt") {
		number = strings.TrimSpace(number)
		return amount{}, fmt.Errorf("%q may be steps or tokens; write %[2]s steps or %[2]s tokens", text, number)
	}
	if !ok || unit == "steps" && value != math.Trunc(value) {
		return amount{}, wrong
	}
	return amount{value, unit, text}, nil
}

// quantity reads a number from 0 up to 2⁵⁰, with a multiple such as K or Mi behind it if that is allowed.
func quantity(text string, multiple bool) (float64, bool) {
	x, err := units.Number(text)
	if !multiple && strings.ContainsAny(text, "KkMmBbGgTt") {
		return 0, false
	}
	return x, err == nil && x >= 0 && x <= 1<<50
}

// steps returns the number of steps in an amount, rounded up.
func (c *Config) steps(a amount) int {
	switch a.unit {
	case "%":
		return int(math.Ceil(a.value/100*float64(c.Train.Steps) - 1e-9))
	case "tokens":
		if ramp, err := c.BatchRamp(); err == nil && (ramp.Stages != nil || c.past != nil) {
			return c.stepsFor(int(a.value))
		}
		return int(math.Ceil(a.value / float64(max(c.Train.BatchTokens, 1))))
	}
	return int(a.value)
}

// resolveAmounts converts lengths given in percent of the run or in tokens into steps.
func (c *Config) resolveAmounts() {
	for name, a := range c.amounts {
		from := c.origins[name]
		c.Derive(name, c.steps(a), a.text)
		from.Rule = c.origins[name].Rule
		c.origins[name] = from // keeps the place
	}
}
