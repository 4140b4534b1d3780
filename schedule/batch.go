package schedule

// BatchRamp grows the batch size during a run (Brown et al. 2020, arXiv 2005.14165: from 32 thousand tokens to the
// full size over the first billions). Early gradients agree so much that large batches waste tokens, and the critical
// batch size grows with training (Merrill et al. 2025, arXiv 2505.23971).
//
// The batch is a function of the tokens read before the step, so it follows from the run's counters. It grows by
// whole micro-batches, so memory does not change. Off by default. Not useful if the full batch is far below the
// gradient noise scale from the start.
type BatchRamp struct {
	Stages []Stage // ascending in Until
	Full   int     // tokens in a step after the last stage
	Unit   int     // tokens in a micro-batch; every batch is a multiple of it
}

// A Stage of a ramp lasts while fewer than Until tokens have been read. Its batch grows linearly from From to To, in
// proportion to the tokens read since the end of the stage before it.
type Stage struct{ From, To, Until int }

// Batch returns the batch, in tokens, of the step that begins after the given number of tokens.
func (r BatchRamp) Batch(tokens int) int {
	start := 0
	for _, s := range r.Stages {
		if tokens < s.Until {
			part := float64(tokens-start) / float64(s.Until-start)
			return max(int(float64(s.From)+part*float64(s.To-s.From))/r.Unit*r.Unit, r.Unit)
		}
		start = s.Until
	}
	return r.Full
}

// Tokens returns the tokens that the first steps of a run read.
func (r BatchRamp) Tokens(steps int) int { return r.After(0, steps) }

// After returns the tokens that a run has read when it has made more steps after the given tokens.
func (r BatchRamp) After(tokens, steps int) int {
	for n := 0; n < steps; {
		batch := r.Batch(tokens)
		same := min(r.SameFor(tokens), steps-n)
		tokens, n = tokens+same*batch, n+same
	}
	return tokens
}

// SameFor returns a number of steps, at least one, for which the batch after the given number of tokens is sure to stay
// the same.
func (r BatchRamp) SameFor(tokens int) int {
	batch := r.Batch(tokens)
	for _, s := range r.Stages {
		switch {
		case tokens >= s.Until:
		case s.From == s.To:
			return (s.Until - tokens + batch - 1) / batch
		default:
			return 1
		}
	}
	return 1 << 62
}

// Steps returns the number of steps after which a run has read at least the given tokens.
func (r BatchRamp) Steps(tokens int) int { return r.StepsFrom(0, tokens) }

// StepsFrom returns the number of steps after which a run that has read done tokens has read at least the given tokens.
func (r BatchRamp) StepsFrom(done, tokens int) int {
	n := 0
	for done < tokens {
		batch := r.Batch(done)
		same := min(r.SameFor(done), (tokens-done+batch-1)/batch)
		done, n = done+same*batch, n+same
	}
	return n
}
