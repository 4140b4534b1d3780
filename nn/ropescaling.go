package nn

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// RoPEScaling slows rotary positions, so that a model reads rows longer than those of its training: without further
// training or, better, after some training on long rows. The zero value does not scale. Its text form is Kind:Factor,
// such as yarn:4, followed by the options that differ from the defaults, such as yarn:4:fast=16.
type RoPEScaling struct {
	Kind   string  // linear, ntk, yarn or llama3; "" is none
	Factor float64 // how many times the original context, that of the first training, the model shall read

	// Pairs that turn more than Fast (yarn) or High (llama3) times within the original context are unchanged, those
	// below Slow or Low are slowed by Factor.
	Fast, Slow float64 // of yarn
	Low, High  float64 // of llama3
	Attention  float64 // of yarn: multiplies cos and sin; 0 means 0.1·ln(Factor) + 1
}

// ropeScalings are the kinds with the default values of their options.
var ropeScalings = map[string]RoPEScaling{
	"linear": {Kind: "linear"},
	"ntk":    {Kind: "ntk"},
	"yarn":   {Kind: "yarn", Fast: 32, Slow: 1},
	"llama3": {Kind: "llama3", Low: 1, High: 4},
}

// scalingOption is an option with its name.
type scalingOption struct {
	name  string
	value *float64
}

// options returns the options of the scaling's kind.
func (s *RoPEScaling) options() []scalingOption {
	switch s.Kind {
	case "yarn":
		return []scalingOption{{"fast", &s.Fast}, {"slow", &s.Slow}, {"attention", &s.Attention}}
	case "llama3":
		return []scalingOption{{"low", &s.Low}, {"high", &s.High}}
	}
	return nil
}

// ParseRoPEScaling reads the format that String writes.
func ParseRoPEScaling(text string) (RoPEScaling, error) {
	if text == "" || text == "none" {
		return RoPEScaling{}, nil
	}
	words := strings.Split(text, ":")
	s, known := ropeScalings[words[0]]
	if !known {
		return RoPEScaling{}, fmt.Errorf("unknown scaling %q: it must be none, or linear, ntk, yarn or llama3 with a "+
			"factor, such as yarn:4", words[0])
	}
	if len(words) == 1 {
		return RoPEScaling{}, fmt.Errorf("%s needs a factor by which it extends the original context, such as %s:4",
			text, text)
	}
	var err error
	if s.Factor, err = strconv.ParseFloat(words[1], 64); err != nil || !(s.Factor >= 1 && s.Factor <= 1<<20) {
		return RoPEScaling{}, fmt.Errorf("the factor %q of %s is not a number from 1 to %d", words[1], s.Kind, 1<<20)
	}
	given := map[string]bool{}
	for _, option := range words[2:] {
		name, value, _ := strings.Cut(option, "=")
		if given[name] {
			return RoPEScaling{}, fmt.Errorf("%s of %s is given twice", name, s.Kind)
		}
		given[name] = true
		known := s.options()
		i := slices.IndexFunc(known, func(o scalingOption) bool { return o.name == name })
		if i < 0 {
			return RoPEScaling{}, fmt.Errorf("%s has no option %q", s.Kind, name)
		}
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x > 0 && x <= 1<<20) {
			return RoPEScaling{}, fmt.Errorf("%s is not a number above 0 and at most %d", option, 1<<20)
		}
		*known[i].value = x
	}
	if s.Slow > s.Fast || s.Low > 0 && s.Low >= s.High {
		return RoPEScaling{}, fmt.Errorf("%s is inconsistent: slow must not exceed fast, and low must be below high",
			text)
	}
	return s, nil
}

// String returns the text form that ParseRoPEScaling reads.
func (s RoPEScaling) String() string {
	if s.Kind == "" {
		return "none"
	}
	text := s.Kind + ":" + strconv.FormatFloat(s.Factor, 'g', -1, 64)
	usual := ropeScalings[s.Kind]
	for i, o := range usual.options() {
		if x := *s.options()[i].value; x != *o.value {
			text += ":" + o.name + "=" + strconv.FormatFloat(x, 'g', -1, 64)
		}
	}
	return text
}

// MarshalText implements encoding.TextMarshaler.
func (s RoPEScaling) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *RoPEScaling) UnmarshalText(text []byte) error {
	scaling, err := ParseRoPEScaling(string(text))
	if err == nil {
		*s = scaling
	}
	return err
}

// NeedsOriginal reports whether the scaling depends on the original context.
func (s RoPEScaling) NeedsOriginal() bool { return s.Kind == "yarn" || s.Kind == "llama3" }

// Frequencies returns, for each of the E/2 pairs of a head of headSize elements, the angle between neighbouring
// positions: θ^(−2i/E) without scaling. original is the context of the
// first training, in tokens; it matters only where NeedsOriginal is true.
func (s RoPEScaling) Frequencies(headSize int, theta float64, original int) []float64 {
	f := make([]float64, headSize/2)
	for i := range f {
		f[i] = math.Pow(theta, -2*float64(i)/float64(headSize))
	}
	switch s.Kind {
	case "linear":
		s.linear(f)
	case "ntk":
		s.ntk(f, headSize)
	case "yarn":
		s.yarn(f, headSize, theta, original)
	case "llama3":
		s.llama3(f, original)
	}
	return f
}

// AttentionFactor returns the factor of queries and keys beside the rotation: 1 except for yarn. Scores are
// multiplied by its square.
func (s RoPEScaling) AttentionFactor() float64 {
	switch {
	case s.Kind != "yarn":
		return 1
	case s.Attention > 0:
		return s.Attention
	}
	return 0.1*math.Log(s.Factor) + 1
}
