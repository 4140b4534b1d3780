package config

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Patterns are groups of parameters by name. The text form is PATTERN lr_ratio=X weight_decay=Y; either number may be
// left out, and semicolons separate groups. In a pattern * stands for any text.
type Patterns struct {
	written
	list []namedGroup
}

// A namedGroup holds settings in which parameters with some names differ from their role's group; NaN changes nothing.
type namedGroup struct {
	pattern            string
	ratio, weightDecay float64
}

const patternsForm = "a list of PATTERN lr_ratio=X weight_decay=Y with semicolons between them"

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Patterns) UnmarshalText(text []byte) error {
	read := Patterns{written: written(text)}
	for part := range strings.SplitSeq(string(text), ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		g := namedGroup{words[0], math.NaN(), math.NaN()}
		if _, err := path.Match(g.pattern, ""); err != nil || len(words) < 2 {
			return fmt.Errorf("%q is not %s, such as layers.*.mlp.* lr_ratio=0.5", strings.TrimSpace(part),
				patternsForm)
		}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			x, err := strconv.ParseFloat(value, 64)
			if err != nil || !(x >= 0) || x > 1e6 {
				return fmt.Errorf("%q in %q is no number from 0 to 1e6", word, strings.TrimSpace(part))
			}
			switch key {
			case "lr_ratio":
				g.ratio = x
			case "weight_decay":
				g.weightDecay = x
			default:
				return fmt.Errorf("%q in %q: a group has lr_ratio and weight_decay", word, strings.TrimSpace(part))
			}
		}
		read.list = append(read.list, g)
	}
	*p = read
	return nil
}

// Of returns the group g of a parameter, changed by the patterns that its name matches; the last pattern wins.
func (p Patterns) Of(name string, g Group) Group {
	for _, x := range p.list {
		if ok, _ := path.Match(x.pattern, name); !ok {
			continue
		}
		if !math.IsNaN(x.ratio) {
			g.LRRatio = x.ratio
		}
		if !math.IsNaN(x.weightDecay) {
			g.WeightDecay = x.weightDecay
		}
	}
	return g
}

// Check returns an error if a pattern matches none of the names of the trained parameters.
func (p Patterns) Check(names []string) error {
	for _, x := range p.list {
		if !matches(x.pattern, names) {
			return Problem{
				Key:     "optimizer.patterns",
				Message: fmt.Sprintf("optimizer.patterns: no trained parameter has a name like %q", x.pattern),
				Try:     "one of " + strings.Join(kindsOf(names), ", "),
			}
		}
	}
	return nil
}

// matches reports whether a pattern matches one of the names.
func matches(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// kindsOf replaces the numbers of layers in names by stars, and drops repeats.
func kindsOf(names []string) (kinds []string) {
	seen := map[string]bool{}
	for _, name := range names {
		words := strings.Split(name, ".")
		for i, word := range words {
			if _, err := strconv.Atoi(word); err == nil {
				words[i] = "*"
			}
		}
		if kind := strings.Join(words, "."); !seen[kind] {
			seen[kind] = true
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
