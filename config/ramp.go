package config

import (
	"fmt"
	"slices"
	"strings"

	"anneal/schedule"
)

// maxRampSteps limits the steps of a ramp, which are visited one by one.
const maxRampSteps = 1 << 22

// A BatchRamp grows the batch over the first tokens of a run. Its text form is FROM over TOKENS, for a linear growth to
// train.batch_tokens, or a list of SIZE until TOKENS.
type BatchRamp struct {
	written
	stages []schedule.Stage // with To = 0 for train.batch_tokens
	err    error
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *BatchRamp) UnmarshalText(text []byte) error {
	*b = BatchRamp{written: written(text)}
	if b.Given() {
		b.stages, b.err = parseStages(string(text))
	}
	return nil
}

func parseStages(text string) (list []schedule.Stage, err error) {
	until := 0
	stages := strings.Split(text, ",")
	for _, stage := range stages {
		size, rest, linear := strings.Cut(stage, " over ")
		if !linear {
			size, rest, _ = strings.Cut(stage, " until ")
		}
		from, ok := quantity(size, true)
		tokens, also := quantity(strings.TrimSuffix(strings.TrimSpace(rest), "tokens"), true)
		switch {
		case !ok || !also || linear && len(stages) > 1:
			return list, fmt.Errorf("%q is neither FROM over TOKENS, such as 4096 over 2M tokens, "+
				"nor a list of SIZE until TOKENS, such as 4096 until 1M tokens, 8192 until 3M tokens", text)
		case from != float64(int(from)) || from < 1:
			return list, fmt.Errorf("a step cannot have %v tokens", from)
		case int(tokens) <= until:
			return list, fmt.Errorf("the stage until %d tokens ends before it begins, at %d tokens", int(tokens), until)
		case tokens-float64(until) > from*maxRampSteps:
			return list, fmt.Errorf("a stage of %.3g tokens in steps of %v is longer than %d steps",
				tokens, from, maxRampSteps)
		}
		s := schedule.Stage{From: int(from), To: int(from), Until: int(tokens)}
		if linear {
			s.To = 0
		}
		list = append(list, s)
		until = s.Until
	}
	return list, nil
}

// BatchRamp returns the batch of every step. Without a ramp it has no stages.
func (c *Config) BatchRamp() (schedule.BatchRamp, error) {
	t := c.Train
	r := schedule.BatchRamp{Full: t.BatchTokens, Unit: max(t.MicroBatch*c.Model.Context, 1) * c.Parallel.Outer.count()}
	if t.BatchTokens < 1 {
		return r, nil
	}
	r.Stages = slices.Clone(t.BatchRamp.stages)
	for i := range r.Stages {
		if r.Stages[i].To == 0 {
			r.Stages[i].To = t.BatchTokens
		}
	}
	return r, t.BatchRamp.err
}

// Tokens returns how many tokens a valid run reads.
func (c *Config) Tokens() int64 { return int64(c.tokensAfter(c.Train.Steps)) }

// microBatchFor returns the derived train.micro_batch. It divides the sequences of every step, and gives every step at
// least two micro-batches if the noise scale compares them.
func (c *Config) microBatchFor() int {
	context := c.Model.Context
	sequences := c.Train.BatchTokens / context
	r, _ := c.BatchRamp()
	for _, s := range r.Stages {
		sequences = gcd(sequences, s.From/context)
	}
	most := sequences
	if c.Train.NoiseScaleEvery > 0 {
		most = sequences / 2 // a step has at least two micro-batches
	}
	return microBatch(sequences, context, most)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// A LengthWarmup lengthens sequences at the beginning of a run. Its text form is FROM over LENGTH.
type LengthWarmup struct {
	written
	from int // tokens
	over amount
	err  error
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *LengthWarmup) UnmarshalText(text []byte) error {
	*l = LengthWarmup{written: written(text)}
	if !l.Given() {
		return nil
	}
	first, rest, ok := strings.Cut(string(text), " over ")
	from, also := quantity(first, true)
	over, err := parseAmount(rest)
	if !ok || !also || err != nil || from != float64(int(from)) {
		l.err = fmt.Errorf(
			"%q is not FROM over LENGTH, such as 64 over 10%%, 64 over 500 steps or 64 over 2M tokens", text)
		return nil
	}
	l.from, l.over = int(from), over
	return nil
}

// LengthRamp returns the length of every step's sequences. Without a warmup it is the context from the first step on.
func (c *Config) LengthRamp() (schedule.LengthRamp, error) {
	r := schedule.LengthRamp{From: c.Model.Context, Full: c.Model.Context}
	if l := c.Train.LengthWarmup; l.Given() && l.err == nil {
		r.From, r.Steps = l.from, c.steps(l.over)
	}
	return r, c.Train.LengthWarmup.err
}

// ramps checks the sizes of batches and the lengths of sequences over the run.
func (k *checker) ramps() {
	k.batchRamp()
	k.lengthWarmup()
	t, context := &k.c.Train, k.c.Model.Context
	k.between("train.noise_scale_every", t.NoiseScaleEvery, 0, 1<<40)
	ramp, err := k.c.BatchRamp()
	block := max(k.c.Parallel.SumBlock, 1)
	if t.NoiseScaleEvery > 0 && err == nil && context > 0 && ramp.Batch(0) <= ramp.Unit*block {
		whole := "one micro-batch of " + counted(t.MicroBatch, "sequence", "sequences")
		if block > 1 {
			whole = fmt.Sprintf("a single block of parallel.sum_block = %d micro-batches", block)
		}
		most := t.MicroBatch * ramp.Batch(0) / ramp.Unit / 2 / block
		k.fault("train.noise_scale_every", noiseScaleTry(most, ramp.Stages != nil),
			"train.noise_scale_every compares parts of a step with the whole, which is %s", whole)
	}
}

// noiseScaleTry says how a step gets two parts or more; most is the largest micro-batch with which it has them, in
// sequences.
func noiseScaleTry(most int, ramped bool) string {
	switch {
	case most > 1:
		return fmt.Sprintf("train.micro_batch = %d or less", most)
	case most == 1:
		return "train.micro_batch = 1"
	case ramped:
		return "a train.batch_ramp that begins with more tokens"
	}
	return "a larger train.batch_tokens"
}

func (k *checker) batchRamp() {
	const key = "train.batch_ramp"
	t, context := &k.c.Train, max(k.c.Model.Context, 1)
	r, err := k.c.BatchRamp()
	if err != nil {
		k.fault(key, fmt.Sprintf("%s = %d over %d tokens", key, context*max(t.MicroBatch, 1), max(t.BatchTokens, 1)*10),
			"%s: %v", key, err)
		return
	}
	unit := r.Unit / k.c.Parallel.Outer.count() // outer checks what groups need
	if r.Stages == nil || t.MicroBatch < 1 || t.BatchTokens%unit != 0 {
		return // nothing to check, or reported elsewhere
	}
	for _, s := range r.Stages {
		switch {
		case s.From%unit != 0:
			k.fault(key, fmt.Sprintf("%d, or a smaller train.micro_batch", max(s.From/unit, 1)*unit),
				"%s: a step of %d tokens is not a whole number of micro-batches of %d sequences of %d tokens", key,
				s.From, t.MicroBatch, context)
			return
		case s.From > t.BatchTokens:
			k.fault(key, fmt.Sprintf("at most %d", t.BatchTokens),
				"%s: a step of %d tokens is larger than the full train.batch_tokens = %d", key, s.From, t.BatchTokens)
			return
		}
	}
	if !slices.ContainsFunc(r.Stages, func(s schedule.Stage) bool { return s.From < t.BatchTokens }) {
		k.fault(key, fmt.Sprintf("%s = %d over %d tokens", key, r.Unit, t.BatchTokens*10),
			"%s begins with the full train.batch_tokens = %d: nothing grows", key, t.BatchTokens)
	}
	if until := r.Stages[len(r.Stages)-1].Until; r.Tokens(t.Steps) < until {
		k.fault(key, fmt.Sprintf("train.steps = %d or more, or a shorter ramp", r.Steps(until)),
			"%s lasts %d tokens, but train.steps = %d read only %d", key, until, t.Steps, r.Tokens(t.Steps))
	}
}

func (k *checker) lengthWarmup() {
	const key = "train.length_warmup"
	r, err := k.c.LengthRamp()
	context := k.c.Model.Context
	switch {
	case err != nil:
		k.fault(key, key+" = 64 over 10%", "%s: %v", key, err)
	case !k.c.Train.LengthWarmup.Given():
	case context%8 != 0:
		k.fault(key, fmt.Sprintf("model.context = %d", (context+7)/8*8),
			"%s cuts sequences into pieces of a multiple of 8 tokens, but model.context = %d", key, context)
	case r.From < 8 || r.From%8 != 0 || r.From >= context:
		k.fault(key, fmt.Sprintf("a multiple of 8 below model.context = %d", context),
			"%s cannot begin with sequences of %d tokens", key, r.From)
	case r.Steps < 1 || r.Steps > k.c.Train.Steps:
		k.fault(key, key+fmt.Sprintf(" = %d over 10%%", r.From), "%s takes %d steps, the run has %d", key, r.Steps,
			k.c.Train.Steps)
	}
}
