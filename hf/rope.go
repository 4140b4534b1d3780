package hf

import (
	"math"
	"reflect"
)

// RopeScaling stretches RoPE to texts longer than those of pre-training. Fields that a Type does not use are zero.
//
//	linear  positions / Factor
//	yarn    each frequency between itself and itself / Factor, by how often it turns within OriginalPositions:
//	        as it is from BetaFast turns on, divided up to BetaSlow turns; sines and cosines times AttentionFactor
//	llama3  the same idea with LowFreq and HighFreq instead of turns, and no factor of attention
//	dynamic a larger base for rows longer than max_position_embeddings, which is OriginalPositions
//	longrope each frequency divided by a factor of its own: ShortFactor for rows of up to OriginalPositions, or
//	        LongFactor
type RopeScaling struct {
	Type              string // linear, yarn, llama3, dynamic, longrope; "" for none
	Factor            float64
	OriginalPositions int     // original_max_position_embeddings
	AttentionFactor   float64 // yarn: usually 0.1·ln Factor + 1; longrope: √(1 + ln Factor/ln OriginalPositions)
	BetaFast          float64 // yarn; usually 32
	BetaSlow          float64 // yarn; usually 1
	LowFreq, HighFreq float64 // llama3: low_freq_factor and high_freq_factor

	ShortFactor, LongFactor []float64 // longrope: for each pair of a head
}

func (s RopeScaling) check(k *checker, headDim int) {
	if s.Type == "" {
		return
	}
	k.positive("rope_scaling.factor", s.Factor)
	if s.Type != "linear" {
		k.size("rope_scaling.original_max_position_embeddings", s.OriginalPositions, math.MaxInt32)
	}
	switch s.Type {
	case "linear", "dynamic":
	case "longrope":
		k.positive("rope_scaling.attention_factor", s.AttentionFactor)
		k.factors("rope_scaling.short_factor", s.ShortFactor, headDim/2)
		k.factors("rope_scaling.long_factor", s.LongFactor, headDim/2)
	case "yarn":
		k.positive("rope_scaling.attention_factor", s.AttentionFactor)
		k.positive("rope_scaling.beta_fast", s.BetaFast)
		k.positive("rope_scaling.beta_slow", s.BetaSlow)
		if s.BetaFast < s.BetaSlow {
			k.bad("rope_scaling.beta_fast = %v is less than beta_slow = %v", s.BetaFast, s.BetaSlow)
		}
	case "llama3":
		k.positive("rope_scaling.low_freq_factor", s.LowFreq)
		k.positive("rope_scaling.high_freq_factor", s.HighFreq)
		if s.HighFreq <= s.LowFreq {
			k.bad("rope_scaling.high_freq_factor = %v is not above low_freq_factor = %v", s.HighFreq, s.LowFreq)
		}
	default:
		k.bad("rope_scaling.rope_type = %q is not supported, only linear, dynamic, yarn, llama3 and longrope", s.Type)
	}
}

// factors checks that a list has a positive number for each pair.
func (k *checker) factors(name string, list []float64, pairs int) {
	if len(list) != pairs {
		k.bad("%s has %d numbers for %d pairs", name, len(list), pairs)
	}
	for _, x := range list {
		k.positive(name, x)
	}
}

// settings returns the fields of rope_scaling and rope_parameters, except the base.
func (s RopeScaling) settings() map[string]any {
	m := map[string]any{"rope_type": "default"}
	if s.Type == "" {
		return m
	}
	m["rope_type"], m["factor"] = s.Type, float(s.Factor)
	if s.Type != "linear" && s.Type != "dynamic" {
		m["original_max_position_embeddings"] = s.OriginalPositions
	}
	switch s.Type {
	case "yarn":
		m["attention_factor"], m["beta_fast"], m["beta_slow"] = float(s.AttentionFactor), float(s.BetaFast),
			float(s.BetaSlow)
	case "llama3":
		m["low_freq_factor"], m["high_freq_factor"] = float(s.LowFreq), float(s.HighFreq)
	case "longrope":
		m["attention_factor"] = float(s.AttentionFactor)
		m["short_factor"], m["long_factor"] = floats(s.ShortFactor), floats(s.LongFactor)
	}
	return m
}

// rope takes the base and the scaling of RoPE from the keys of transformers 5 (rope_parameters) or 4 (rope_theta,
// rope_scaling), and reports whether there was a base. If both are given, they must agree.
func (f *fields) rope(c *LlamaConfig) (hasTheta bool) {
	hasTheta = f.take("rope_theta", &c.RopeTheta)
	outer, given := c.RopeTheta, false
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		inner := &fields{}
		if !f.take(name, &inner.raw) {
			continue
		}
		scaling := inner.scaling(c.MaxPositions)
		theta := c.RopeTheta
		if inner.take("rope_theta", &theta) {
			if hasTheta && theta != c.RopeTheta {
				inner.fail("rope_theta = %v is not the rope_theta = %v beside it", theta, outer)
			}
			c.RopeTheta, hasTheta = theta, true
		}
		inner.rest(nil)
		for _, err := range inner.errs {
			f.fail("%s.%w", name, err)
		}
		if given && !reflect.DeepEqual(scaling, c.RopeScaling) {
			f.fail("rope_scaling and rope_parameters do not say the same")
		}
		c.RopeScaling, given = scaling, true
	}
	f.originalOutside(c.RopeScaling)
	only(f, "partial_rotary_factor", 1.0)
	return hasTheta
}

// originalOutside takes the original context that longrope may have beside its settings, too.
func (f *fields) originalOutside(s RopeScaling) {
	if s.Type == "longrope" {
		only(f, "original_max_position_embeddings", s.OriginalPositions)
	}
}

// scaling takes the settings of rope_scaling or rope_parameters, with transformers' defaults. positions is the
// context before scaling, unless a field says otherwise.
func (f *fields) scaling(positions int) RopeScaling {
	s := RopeScaling{}
	if !f.take("rope_type", &s.Type) {
		f.take("type", &s.Type)
	} else {
		only(f, "type", s.Type)
	}
	only(f, "partial_rotary_factor", 1.0)
	if s.Type == "default" || s.Type == "" {
		return RopeScaling{}
	}
	switch s.Type {
	case "dynamic":
		f.must("factor", &s.Factor)
		s.OriginalPositions = positions
		only(f, "original_max_position_embeddings", positions)
	case "longrope":
		f.longRope(&s, positions)
	case "linear":
		f.must("factor", &s.Factor)
	case "yarn":
		f.yarn(&s, positions)
	case "llama3":
		f.must("factor", &s.Factor)
		f.must("low_freq_factor", &s.LowFreq)
		f.must("high_freq_factor", &s.HighFreq)
		s.OriginalPositions = positions
		f.take("original_max_position_embeddings", &s.OriginalPositions)
	default:
		f.fail("rope_type = %.60s is not supported, only default, linear, dynamic, yarn, llama3 and longrope", s.Type)
		clear(f.raw) // all other fields belong to that type
	}
	return s
}

func (f *fields) longRope(s *RopeScaling, positions int) {
	f.must("short_factor", &s.ShortFactor)
	f.must("long_factor", &s.LongFactor)
	s.OriginalPositions = positions
	f.take("original_max_position_embeddings", &s.OriginalPositions)
	if !f.take("factor", &s.Factor) {
		s.Factor = float64(positions) / float64(max(s.OriginalPositions, 1))
	}
	if f.take("attention_factor", &s.AttentionFactor) {
		return
	}
	s.AttentionFactor = longRopeAttention(s.Factor, s.OriginalPositions)
}

// longRopeAttention returns longrope's factor of sines and cosines.
func longRopeAttention(factor float64, original int) float64 {
	if factor <= 1 {
		return 1
	}
	return math.Sqrt(1 + math.Log(factor)/math.Log(float64(original)))
}

func (f *fields) yarn(s *RopeScaling, positions int) {
	s.BetaFast, s.BetaSlow, s.OriginalPositions = 32, 1, positions
	f.take("original_max_position_embeddings", &s.OriginalPositions)
	if !f.take("factor", &s.Factor) {
		s.Factor = float64(positions) / float64(max(s.OriginalPositions, 1))
	}
	f.take("beta_fast", &s.BetaFast)
	f.take("beta_slow", &s.BetaSlow)
	only(f, "truncate", true)
	var scale, all float64
	f.take("mscale", &scale)
	f.take("mscale_all_dim", &all)
	if f.take("attention_factor", &s.AttentionFactor) {
		return
	}
	s.AttentionFactor = yarnAttention(s.Factor, 1)
	if scale != 0 && all != 0 {
		s.AttentionFactor = yarnAttention(s.Factor, scale) / yarnAttention(s.Factor, all)
	}
}

// yarnAttention returns YaRN's factor of sines and cosines.
func yarnAttention(factor, scale float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*scale*math.Log(factor) + 1
}

// floats converts numbers to the form that settings writes.
func floats(list []float64) []float {
	written := make([]float, len(list))
	for i, x := range list {
		written[i] = float(x)
	}
	return written
}
