package model

import (
	"fmt"
	"math"
	"slices"

	"anneal/tensor"
)

// Sampling defines how the next token is drawn from the model's distribution.
type Sampling struct {
	Temperature float64 // 0 takes the most likely token
	TopK        int     // keep the K most likely; 0 keeps all
	// of the remaining tokens, keep the fewest most likely ones whose probabilities reach TopP; 0 or 1 keeps all
	TopP float64
	// of those, keep the ones with at least MinP of the first one's probability (Nguyen et al. 2024, arXiv 2407.01082)
	MinP float64
	Seed uint64

	// Repetition divides positive logits of tokens that are in the text, and multiplies negative ones (Keskar et al.
	// 2019, arXiv 1909.05858); 0 and 1 change nothing.
	Repetition float64
	// Frequency and Presence lower the logits of generated tokens: Frequency once for each occurrence, Presence once
	// per token.
	Frequency, Presence float64
	Prompt              int // tokens of the text that were not generated; Frequency and Presence do not count them
}

// Validate returns an error that names an invalid setting and a valid one.
func (s Sampling) Validate() error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(s.Temperature, 0):
		return &SamplingError{"temperature", fmt.Sprintf("%v is not a finite number of at least 0", s.Temperature),
			"0 for the most likely token, 1 for the model's own distribution"}
	case s.TopK < 0:
		return &SamplingError{"top-k", fmt.Sprintf("%d is negative", s.TopK), "0 to keep all tokens, or 40"}
	case !(s.TopP >= 0 && s.TopP <= 1):
		return &SamplingError{"top-p", fmt.Sprintf("%v is not a probability", s.TopP), "1 to keep all tokens, or 0.95"}
	case !(s.MinP >= 0 && s.MinP <= 1):
		return &SamplingError{"min-p", fmt.Sprintf("%v is not a share of a probability", s.MinP),
			"0 to keep all tokens, or 0.05"}
	case s.Repetition != 0 && !(s.Repetition >= minRepetition && s.Repetition <= maxPenalty):
		return wrongRepetition(s.Repetition)
	case !(math.Abs(s.Frequency) <= maxPenalty):
		return wrongPenalty("frequency-penalty", s.Frequency)
	case !(math.Abs(s.Presence) <= maxPenalty):
		return wrongPenalty("presence-penalty", s.Presence)
	}
	return nil
}

// Given returns a sampling of settings that a user gave, or an error as Validate. To a user, a TopP of 0 is the
// smallest set, the most likely token alone, and a Repetition of 0 is out of bounds; in a Sampling they change nothing.
func (s Sampling) Given() (Sampling, error) {
	if s.Repetition == 0 {
		return s, wrongRepetition(0)
	}
	if s.TopP == 0 {
		s.TopP = math.SmallestNonzeroFloat64
	}
	return s, s.Validate()
}

// Penalties within these bounds keep logits finite, so that probabilities are numbers.
const (
	maxPenalty    = 100
	minRepetition = 0.01
)

func wrongRepetition(x float64) error {
	return &SamplingError{"repetition-penalty",
		fmt.Sprintf("%v is not between %v and %v", x, minRepetition, maxPenalty), "1 for no penalty, or 1.1"}
}

func wrongPenalty(name string, x float64) error {
	return &SamplingError{name, fmt.Sprintf("%v is not between %v and %v", x, -maxPenalty, maxPenalty),
		"0 for no penalty, or 0.5"}
}

// A SamplingError describes an invalid value of Sampling.
type SamplingError struct {
	Name    string // of the value, such as top-p
	Message string
	Try     string // what to do
}

func (e *SamplingError) Error() string { return e.Name + " " + e.Message + "\n  try " + e.Try }

// penalise lowers the logits c of tokens that are in ids. c has all tokens, in order.
func (s Sampling) penalise(c []candidate, ids []int32) {
	if s.Repetition != 0 && s.Repetition != 1 {
		seen := make([]bool, len(c))
		for _, id := range ids {
			if x := &c[id]; !seen[id] && x.p > 0 {
				x.p /= s.Repetition
			} else if !seen[id] {
				x.p *= s.Repetition
			}
			seen[id] = true
		}
	}
	if s.Frequency == 0 && s.Presence == 0 {
		return
	}
	made := make([]bool, len(c))
	for _, id := range ids[min(s.Prompt, len(ids)):] {
		c[id].p -= s.Frequency
		if !made[id] {
			c[id].p -= s.Presence
		}
		made[id] = true
	}
}

// A Sampler draws tokens. It keeps memory for one call at a time.
type Sampler struct{ probs, spare []candidate }

type candidate struct {
	id int32
	p  float64 // a logit, then a probability
}

// Next draws the token that follows ids from its logits [1, V], as a pure function of these, the sampling and its
// seed. The sampling must be valid.
func (x *Sampler) Next(logits *tensor.Tensor, ids []int32, s Sampling) int32 {
	x.load(logits)
	s.penalise(x.probs, ids)
	if s.Temperature <= 0 {
		best := x.probs[0]
		for _, c := range x.probs[1:] {
			if c.p > best.p {
				best = c
			}
		}
		return best.id
	}
	u := tensor.NewRNG(s.Seed, tensor.PurposeSample, uint32(len(ids))).Float64(0)
	return draw(nucleus(x.descending(s.TopK), s), u)
}

// load makes a candidate of each token, in their order.
func (x *Sampler) load(logits *tensor.Tensor) {
	x.probs = slices.Grow(x.probs[:0], logits.Len())[:logits.Len()]
	if logits.DType() == tensor.F32 {
		for i, z := range logits.F32() {
			x.probs[i] = candidate{int32(i), float64(z)}
		}
		return
	}
	for i := range x.probs {
		x.probs[i] = candidate{int32(i), logits.Float64(i)}
	}
}

// nucleus turns the logits of candidates, in descending order, into probabilities at the temperature. It keeps the top
// P, and of these the candidates that are likely enough compared with the first.
func nucleus(c []candidate, s Sampling) []candidate {
	top, sum := c[0].p, 0.0
	for i := range c {
		c[i].p = math.Exp((c[i].p - top) / s.Temperature)
		sum += c[i].p
	}
	for i := range c {
		c[i].p /= sum
	}
	return likely(mass(c, s.TopP), s.MinP)
}

// mass returns the fewest candidates whose probabilities sum to at least topP; 0 means all.
func mass(c []candidate, topP float64) []candidate {
	if topP <= 0 || topP >= 1 {
		return c
	}
	sum := 0.0
	for i := range c {
		if sum += c[i].p; sum >= topP {
			return c[:i+1]
		}
	}
	return c
}

// likely returns the candidates whose probability is at least minP of the first one's.
func likely(c []candidate, minP float64) []candidate {
	for i := range c {
		if c[i].p < minP*c[0].p {
			return c[:i]
		}
	}
	return c
}

// draw picks the candidate at u ∈ [0, 1) of the total probability.
func draw(c []candidate, u float64) int32 {
	sum := 0.0
	for _, x := range c {
		sum += x.p
	}
	u *= sum
	for _, x := range c {
		if u -= x.p; u < 0 {
			return x.id
		}
	}
	return c[len(c)-1].id
}

// LogSumExp returns the logarithm of the sum of the exponentials of logits [1, V]: the log-probability of a token is
// its logit minus this.
func LogSumExp(logits *tensor.Tensor) float64 {
	top := math.Inf(-1)
	for i := range logits.Len() {
		top = max(top, logits.Float64(i))
	}
	sum := 0.0
	for i := range logits.Len() {
		sum += math.Exp(logits.Float64(i) - top)
	}
	return top + math.Log(sum)
}
