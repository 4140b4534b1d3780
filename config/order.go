package config

import (
	"fmt"
	"slices"
	"strings"

	"anneal/dataset"
)

// orderForm shows the forms of data.order.
const orderForm = "first SCORES over LENGTH, last SCORES over LENGTH, or one of the two, such as first compression " +
	"over 15%, last quality over 10%"

// An Order says by which scores the samples of a run are ordered; with an empty text they are in random order.
type Order struct {
	written
	phases []orderPhase
	err    error
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Order) UnmarshalText(text []byte) error {
	*o = Order{written: written(text)}
	if !o.Given() {
		return nil
	}
	for part := range strings.SplitSeq(string(text), ",") {
		p, err := parsePhase(part)
		if err != nil {
			o.err = err
			return nil
		}
		o.phases = append(o.phases, p)
	}
	return nil
}

// Order returns how the samples of a run are ordered by scores; the zero Order is plain random order.
func (c *Config) Order() (dataset.Order, error) {
	var o dataset.Order
	if !c.Data.Order.Given() {
		return o, nil
	}
	o.Run = c.samples(c.Train.Steps)
	for _, p := range c.Data.Order.phases {
		steps := c.steps(p.over)
		switch {
		case steps < 1 || steps > c.Train.Steps:
			return o, fmt.Errorf("%s %s goes over %d steps, the run has %d", p.which, p.scores, steps, c.Train.Steps)
		case p.which == "first" && o.First.Scores != "" || p.which == "last" && o.Last.Scores != "":
			return o, fmt.Errorf("%s is given twice", p.which)
		case p.which == "first":
			o.First = dataset.First{
				Scores: p.scores, High: p.high, Samples: c.samples(steps), Start: p.share, Pacing: p.pacing,
			}
		default:
			since := c.steps(p.since)
			if since > c.Train.Steps-steps {
				return o, fmt.Errorf("last %s begins at step %d, but rows are kept back only since step %d",
					p.scores, c.Train.Steps-steps, since)
			}
			o.Last = dataset.Last{
				Scores: p.scores, High: p.high, Samples: o.Run - c.samples(c.Train.Steps-steps), Best: p.share,
				Since: c.samples(since),
			}
		}
	}
	if err := c.Data.Order.err; err != nil {
		return o, err
	}
	if o.First.Samples+o.Last.Samples > o.Run {
		return o, fmt.Errorf("first and last together take %d samples, the run has %d",
			o.First.Samples+o.Last.Samples, o.Run)
	}
	return o, nil
}

// samples returns how many samples the first steps of a run read.
func (c *Config) samples(steps int) uint64 {
	return uint64(max(c.tokensAfter(steps), 0) / max(c.Model.Context, 1))
}

// orderPhase is one of the two parts of data.order.
type orderPhase struct {
	which, scores string
	high          bool
	over, since   amount
	share         float64
	pacing        dataset.Pacing
}

// parsePhase reads "first [low|high] SCORES over LENGTH [from N%] [by PACING]" and "last [low|high] SCORES over LENGTH
// [of N%] [since LENGTH]". Without low or high, the first part reads easy samples, those with low scores, or high ones
// for flesch; the last part reads the opposite end.
func parsePhase(text string) (p orderPhase, err error) {
	words := strings.Fields(text)
	if len(words) < 2 || words[0] != "first" && words[0] != "last" {
		return p, fmt.Errorf("%q is not %s", strings.TrimSpace(text), orderForm)
	}
	p.which, words = words[0], words[1:]
	first := p.which == "first"
	end := words[0]
	if end == "low" || end == "high" {
		words = words[1:]
	}
	if len(words) == 0 || words[0] == "over" || !dataset.ScoresName.MatchString(words[0]) {
		return p, fmt.Errorf("%q names no scores after %s, such as compression", strings.TrimSpace(text), p.which)
	}
	p.scores, words = words[0], words[1:]
	switch end {
	case "low", "high":
		p.high = end == "high"
	default:
		p.high = (p.scores == "flesch") == first
	}
	clauses := map[string]string{"over": "", "since": "0"}
	if first {
		clauses = map[string]string{"over": "", "from": "10%", "by": string(dataset.Linear)}
	} else {
		clauses["of"] = "20%"
	}
	seen := map[string]bool{}
	isClause := func(w string) bool { return slices.Contains([]string{"over", "from", "by", "of", "since"}, w) }
	for len(words) > 0 {
		word := words[0]
		if seen[word] {
			return p, fmt.Errorf("%q is given twice in %q", word, strings.TrimSpace(text))
		}
		if _, known := clauses[word]; !known {
			return p, fmt.Errorf("%q is not an option of %q", word, strings.TrimSpace(text))
		}
		seen[word] = true
		until := slices.IndexFunc(words[1:], isClause)
		if until < 0 {
			until = len(words) - 1
		}
		clauses[word], words = strings.Join(words[1:1+until], " "), words[1+until:]
	}
	if p.over, err = parseAmount(clauses["over"]); err != nil {
		return p, fmt.Errorf("over %w", err)
	}
	share := clauses["from"]
	if !first {
		share = clauses["of"]
		if p.since, err = parseAmount(clauses["since"]); err != nil {
			return p, fmt.Errorf("since %w", err)
		}
	}
	percent, ok := quantity(strings.TrimSuffix(share, "%"), false)
	if !ok || !strings.HasSuffix(share, "%") || percent <= 0 || percent > 100 {
		return p, fmt.Errorf("%q is not a share of the rows, such as 10%%", share)
	}
	p.share, p.pacing = percent/100, dataset.Pacing(clauses["by"])
	if known := []dataset.Pacing{dataset.Linear, dataset.Root, dataset.Step}; first &&
		!slices.Contains(known, p.pacing) {
		return p, fmt.Errorf("%q is not a pacing; there are %s, %s and %s",
			clauses["by"], dataset.Linear, dataset.Root, dataset.Step)
	}
	return p, nil
}

// order checks how samples are ordered.
func (k *checker) order() {
	if _, err := k.c.Order(); err != nil {
		k.fault("data.order", "data.order = first compression over 15%, or remove it", "data.order: %v", err)
	}
}
