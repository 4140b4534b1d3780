package use

import (
	"anneal/attention"
	"anneal/model"
)

// schemes are positions by their text.
func schemes(text string) (p model.Positions) {
	if err := p.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return p
}

// seen are patterns by their text.
func seen(text string) (p attention.Patterns) {
	if err := p.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return p
}

// recomputing is a strategy by its text.
func recomputing(text string) (r model.Recompute) {
	if err := r.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return r
}
