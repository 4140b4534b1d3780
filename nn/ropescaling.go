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
	Kind   string  // linear, ntk, dynamic, yarn, llama3 or longrope; "" is none
	Factor float64 // context to read, as a multiple of the original context

	// Pairs that turn more than Fast (yarn) or High (llama3) times within the original context are unchanged, those
	// below Slow or Low are slowed by Factor.
	Fast, Slow float64 // of yarn
	Low, High  float64 // of llama3

	// Attention multiplies cos and sin. 0 is the default: 0.1·ln(Factor) + 1 with yarn, see long for longrope.
	Attention float64

	Short, Long Factors // of longrope: one of each pair
}

// Lengths are the contexts that a scaling depends on, in tokens.
type Lengths struct {
	Original  int // of the first training; read where NeedsOriginal is true
	Positions int // of the model that uses the scaling
}

// ropeScalings are the kinds with the default values of their options.
var ropeScalings = map[string]RoPEScaling{
	"linear":   {Kind: "linear"},
	"ntk":      {Kind: "ntk"},
	"dynamic":  {Kind: "dynamic"},
	"yarn":     {Kind: "yarn", Fast: 32, Slow: 1},
	"llama3":   {Kind: "llama3", Low: 1, High: 4},
	"longrope": {Kind: "longrope"},
}

// scalingOption is an option with its name: a number or a list.
type scalingOption struct {
	name  string
	value *float64
	list  *Factors
}

func (o scalingOption) set(text string) (err error) {
	if o.list != nil {
		*o.list, err = parseFactors(text)
		return err
	}
	*o.value, err = parseAbove0(text)
	return err
}

// String returns the value as set reads it.
func (o scalingOption) String() string {
	if o.list != nil {
		return string(*o.list)
	}
	return strconv.FormatFloat(*o.value, 'g', -1, 64)
}

// options returns the options of the scaling's kind.
func (s *RoPEScaling) options() []scalingOption {
	switch s.Kind {
	case "yarn":
		return []scalingOption{
			{name: "fast", value: &s.Fast}, {name: "slow", value: &s.Slow}, {name: "attention", value: &s.Attention},
		}
	case "llama3":
		return []scalingOption{{name: "low", value: &s.Low}, {name: "high", value: &s.High}}
	case "longrope":
		return []scalingOption{
			{name: "short", list: &s.Short}, {name: "long", list: &s.Long}, {name: "attention", value: &s.Attention},
		}
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
		return RoPEScaling{}, fmt.Errorf("unknown scaling %q: it must be none, or linear, ntk, dynamic, yarn, llama3 "+
			"or longrope with a factor, such as yarn:4", words[0])
	}
	if len(words) == 1 {
		return RoPEScaling{}, fmt.Errorf("%s needs a factor by which it extends the original context, such as %s:4",
			text, text)
	}
	var err error
	if s.Factor, err = strconv.ParseFloat(words[1], 64); err != nil || !(s.Factor >= 1 && s.Factor <= 1<<20) {
		return RoPEScaling{}, fmt.Errorf("the factor %q of %s is not a number from 1 to %d", words[1], s.Kind, 1<<20)
	}
	if err := s.parseOptions(words[2:]); err != nil {
		return RoPEScaling{}, err
	}
	switch {
	case s.Slow > s.Fast || s.Low > 0 && s.Low >= s.High:
		return RoPEScaling{}, fmt.Errorf("%s is inconsistent: slow must not exceed fast, and low must be below high",
			text)
	case s.Kind == "longrope" && s.Long == "":
		return RoPEScaling{}, fmt.Errorf("%s needs a factor for each pair of a head's elements, such as "+
			"%s:long=1,1.2,2,4 for heads of 8", text, text)
	}
	return s, nil
}

// parseOptions sets the options of the scaling's kind, each of the form name=value.
func (s *RoPEScaling) parseOptions(words []string) error {
	given := map[string]bool{}
	for _, option := range words {
		name, value, _ := strings.Cut(option, "=")
		if given[name] {
			return fmt.Errorf("%s of %s is given twice", name, s.Kind)
		}
		given[name] = true
		known := s.options()
		i := slices.IndexFunc(known, func(o scalingOption) bool { return o.name == name })
		if i < 0 {
			return fmt.Errorf("%s has no option %q", s.Kind, name)
		}
		if err := known[i].set(value); err != nil {
			return fmt.Errorf("%s of %s: %w", name, s.Kind, err)
		}
	}
	return nil
}

// String returns the text form that ParseRoPEScaling reads.
func (s RoPEScaling) String() string {
	if s.Kind == "" {
		return "none"
	}
	text := s.Kind + ":" + strconv.FormatFloat(s.Factor, 'g', -1, 64)
	usual := ropeScalings[s.Kind]
	for i, o := range usual.options() {
		if x := s.options()[i].String(); x != o.String() {
			text += ":" + o.name + "=" + x
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
func (s RoPEScaling) NeedsOriginal() bool {
	return slices.Contains([]string{"dynamic", "yarn", "llama3", "longrope"}, s.Kind)
}

// Frequencies returns, for each of the E/2 pairs of a head of headSize elements, the angle between neighbouring
// positions: θ^(−2i/E) without scaling.
func (s RoPEScaling) Frequencies(headSize int, theta float64, l Lengths) []float64 {
	f := make([]float64, headSize/2)
	for i := range f {
		f[i] = math.Pow(theta, -2*float64(i)/float64(headSize))
	}
	switch s.Kind {
	case "linear":
		s.linear(f)
	case "ntk":
		s.ntk(f, headSize)
	case "dynamic":
		s.dynamic(f, headSize, l)
	case "yarn":
		s.yarn(f, headSize, theta, l.Original)
	case "llama3":
		s.llama3(f, l.Original)
	case "longrope":
		s.long(f, l)
	}
	return f
}

// AttentionFactor returns the factor of queries and keys beside the rotation: 1 except for yarn and longrope. Scores
// are multiplied by its square.
func (s RoPEScaling) AttentionFactor(original int) float64 {
	switch {
	case s.Attention > 0:
		return s.Attention
	case s.Kind == "yarn":
		return 0.1*math.Log(s.Factor) + 1
	case s.Kind == "longrope":
		return s.longAttention(original)
	}
	return 1
}
