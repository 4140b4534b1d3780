package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"anneal/internal/nearest"
	"anneal/internal/units"
	"anneal/internal/yaml"
	"anneal/model"
)

// Validate checks every value and every combination, after derivation, and returns everything that cannot work as one
// *Error. It does not change c.
func (c *Config) Validate() error {
	r := c.Clone()
	r.Resolve()
	return asError(r.check())
}

// check is Validate on a resolved config.
func (c *Config) check() []Problem {
	k := checker{c: c}
	k.names()
	k.length()
	k.model()
	k.family()
	k.init()
	k.ewc()
	k.distill()
	k.mup()
	k.attention()
	k.latent()
	k.preceding()
	k.globalProjections()
	k.linear()
	k.training()
	k.recompute()
	k.offload()
	k.parallel()
	k.precision()
	k.scheduleFree()
	k.ignored()
	k.frozen()
	k.lora()
	k.mix()
	k.order()
	k.log()
	return k.problems
}

type checker struct {
	c        *Config
	problems []Problem
}

func (k *checker) fault(key, try, format string, args ...any) {
	k.problems = append(k.problems, Problem{
		Key: key, Message: fmt.Sprintf(format, args...), At: k.c.origins[key].Place(), Try: try,
	})
}

// names checks the keys whose value is one of a few names.
func (k *checker) names() {
	for _, key := range allKeys {
		v := k.c.value(key)
		if key.Values == nil || slices.Contains(key.Values, v) {
			continue
		}
		try := strings.Join(key.Values, ", ")
		if near := nearest.To(strings.ToLower(v), key.Values); near != "" {
			try = near + "; there are " + try
		}
		k.fault(key.Name, try, "%s = %q is not known", key.Name, v)
	}
}

// between checks low ≤ n ≤ high. The upper limits are far above what any machine holds; they keep every product of
// sizes within 64 bits.
func (k *checker) between(key string, n, low, high int) bool {
	switch {
	case n < low:
		k.fault(key, fmt.Sprintf("%s = %d or more", key, low), "%s = %d is too small", key, n)
	case n > high:
		k.fault(key, fmt.Sprintf("%s = %d or less", key, high), "%s = %d is too large", key, n)
	}
	return n >= low && n <= high
}

// number checks that f lies in an interval; brackets is how the interval is written, such as "[)" for low ≤ f < high.
func (k *checker) number(key string, f, low, high float64, brackets string) {
	above := f > low || f == low && brackets[0] == '['
	below := f < high || f == high && brackets[1] == ']'
	if above && below {
		return
	}
	of, given, unit := allKeys[keyIndex[key]], fmt.Sprintf("%g", f), ""
	if of.Type == durationType {
		given, unit = minutes(f), " minutes"
	}
	k.fault(key, key+" = "+k.leftOut(of), "%s = %s lies outside %c%g, %.6g%c%s", key, given, brackets[0], low, high,
		brackets[1], unit)
}

// minutes writes a number of minutes; a fraction of a minute as a duration.
func minutes(f float64) string {
	if f == math.Trunc(f) || math.Abs(f) > 1e6 || f-f != 0 {
		return fmt.Sprintf("%g", f)
	}
	return time.Duration(math.Round(f * float64(time.Minute))).String()
}

func (k *checker) model() {
	m := &k.c.Model
	sizes := k.between("model.layers", m.Layers, 1, 1<<12)
	sizes = k.between("model.dim", m.Dim, 1, 1<<18) && sizes
	sizes = k.between("model.heads", m.Heads, 1, 1<<12) && sizes
	k.between("model.ffn", m.FFN, 1, 1<<20)
	k.between("model.context", m.Context, 2, 1<<20)
	k.between("model.vocab", m.Vocab, 0, 1<<24)
	k.positions()
	k.experts()
	k.between("model.score_dim", m.ScoreDim, 0, 1<<18)
	k.number("model.norm_eps", m.NormEps, 0, 1, "()")
	if m.LogitSoftcap != 0 {
		k.number("model.logit_softcap", m.LogitSoftcap, 1e-3, 1e6, "[]")
	}
	k.scoreSoftcap()
	k.number("model.init_std", m.InitStd, 0, 10, "()")
	k.number("model.dropout", m.Dropout, 0, 1, "[)")
	k.number("model.stochastic_depth", m.StochasticDepth, 0, 1, "[)")
	if !sizes {
		return // the divisions below would repeat these problems
	}
	k.headDim()
	if k.between("model.kv_heads", m.KVHeads, 1, m.Heads) && m.Heads%m.KVHeads != 0 {
		k.fault("model.kv_heads", "model.kv_heads = "+divisors(m.Heads, m.KVHeads),
			"model.kv_heads = %d does not divide model.heads = %d", m.KVHeads, m.Heads)
	}
}

// scoreSoftcap checks the soft-cap of attention's scores.
func (k *checker) scoreSoftcap() {
	m := &k.c.Model
	if m.AttentionSoftcap == 0 {
		return
	}
	k.number("model.attention_softcap", m.AttentionSoftcap, 1e-3, 1e6, "[]")
	if m.HasPositions("alibi") {
		k.fault("model.attention_softcap", "model.positions = rope, or model.attention_softcap = 0",
			"model.attention_softcap = %g does not work with ALiBi, which is part of the products that it caps",
			m.AttentionSoftcap)
	}
}

// headsHint suggests the nearest numbers of heads that divide the width, and the next width that the heads divide.
func headsHint(m *model.Config) string {
	return fmt.Sprintf("model.heads = %s, or model.dim = %d", divisors(m.Dim, m.Heads), (m.Dim/(2*m.Heads)+1)*2*m.Heads)
}

// divisors names the divisors of n that are next below and next above d.
func divisors(n, d int) string {
	low, high := min(d, n), d+1
	for n%low != 0 {
		low--
	}
	for high <= n && n%high != 0 {
		high++
	}
	if high > n {
		return strconv.Itoa(low)
	}
	return fmt.Sprintf("%d or %d", low, high)
}

// length refuses a config that could not be read again, which YAML's limit on a file forbids.
func (k *checker) length() {
	const most = yaml.MaxBytes - 4<<10 // the rest is for values that a run still derives
	longest := slices.MaxFunc(allKeys, func(a, b Key) int { return len(k.c.value(a)) - len(k.c.value(b)) })
	if n := len(k.c.value(longest)); n > most/64 && len(k.c.YAML()) > most {
		k.fault(longest.Name, "a shorter value", "%s has %s characters, and with it a run's config.yaml more than "+
			"%d KiB", longest.Name, units.Commas(n), most>>10)
	}
}

func (k *checker) training() {
	c := k.c
	t := &c.Train
	k.between("threads", c.Threads, 0, 1<<12)
	k.between("train.steps", t.Steps, 1, 1<<40)
	k.number("train.minutes", t.Minutes, 0, 1e9, "[)")
	if k.between("train.batch_tokens", t.BatchTokens, 1, 1<<40) && c.Model.Context >= 2 {
		k.batch()
	}
	if most := float64(int64(1) << 60); float64(t.Steps)*float64(t.BatchTokens) > most && !k.reported("train.steps") {
		k.fault("train.steps", "fewer steps", "train.steps · train.batch_tokens is more than 2^60 tokens")
	}
	k.number("train.clip", t.Clip, 0, 1e30, "[)")
	k.number("train.z_loss", t.ZLoss, 0, 1, "[)")
	k.between("train.eval_every", t.EvalEvery, 0, 1<<40)
	k.between("train.eval_tokens", t.EvalTokens, 0, 1<<50)
	k.between("train.norms_every", t.NormsEvery, 0, 1<<40)
	k.between("train.log_every", t.LogEvery, 1, 1<<40)

	k.optimizer()

	k.schedule()
	k.ramps()

	k.between("checkpoint.every", c.Checkpoint.Every, 0, 1<<40)
	k.between("checkpoint.keep", c.Checkpoint.Keep, 2, 1<<20)
	k.between("checkpoint.max_failures", c.Checkpoint.MaxFailures, 1, 1<<20)
	k.between("guard.max_skips", c.Guard.MaxSkips, 1, 1<<40)
	k.between("guard.rewinds", c.Guard.Rewinds, 1, 1<<20)
	k.between("guard.replay_every", c.Guard.ReplayEvery, 0, 1<<40)
	k.between("guard.rewound", c.Guard.Rewound, 0, 1<<20)
	k.number("guard.spike_z", c.Guard.SpikeZ, 0, 1e6, "[)")
	k.number("average.ema", c.Average.EMA, 0, 1, "[)")
	k.between("eval.tasks_every", c.Eval.TasksEvery, 0, 1<<40)
	k.between("samples.every", c.Samples.Every, 0, 1<<40)
	k.between("samples.tokens", c.Samples.Tokens, 1, 1<<20)
	k.number("samples.temperature", c.Samples.Temperature, 0, 100, "[]")
	k.between("guard.window", c.Guard.Window, 4, maxWindow)
}

// maxWindow limits guard.window of all groups together: their numbers are in the small state of a checkpoint.
const maxWindow = 1 << 16

// batch checks that a step is a whole number of micro-batches of whole sequences.
func (k *checker) batch() {
	t, context := &k.c.Train, k.c.Model.Context
	switch {
	case t.BatchTokens < context:
		k.fault("model.context", fmt.Sprintf("train.batch_tokens = %d", context),
			"model.context = %d is longer than a whole step, train.batch_tokens = %d", context, t.BatchTokens)
	case t.BatchTokens%context != 0:
		k.fault("train.batch_tokens", fmt.Sprintf("train.batch_tokens = %d", t.BatchTokens/context*context),
			"train.batch_tokens = %d is not a multiple of model.context = %d", t.BatchTokens, context)
	case k.between("train.micro_batch", t.MicroBatch, 1, 1<<30) && t.BatchTokens/context%t.MicroBatch != 0:
		k.fault("train.micro_batch", "train.micro_batch = "+divisors(t.BatchTokens/context, t.MicroBatch),
			"train.micro_batch = %d does not divide the %d sequences of a step", t.MicroBatch, t.BatchTokens/context)
	}
}
