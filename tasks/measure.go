package tasks

import (
	"regexp"
	"slices"
	"unicode/utf8"

	"anneal/tasks/jinja"
)

// A response is a model's answer to a request.
type response struct {
	Likelihood
	text string // of generate_until
}

// A measure is an item's contribution to a metric: a value and a weight. Some metrics divide the sum of the values by
// the sum of the weights.
type measure struct{ value, weight float64 }

// measures returns the measures of an item in the order of the task's metrics, and the answer after the filters if the
// model writes it.
func (t *Task) measures(q *question, answers []response, p pipeline) ([]measure, string, error) {
	switch t.Output {
	case MultipleChoice:
		return t.ofChoices(q, answers), "", nil
	case LogLikelihood:
		a := answers[0]
		return t.each(map[string]measure{"perplexity": {a.LogProb, 1}, "acc": right(a.Greedy)}), "", nil
	case Rolling:
		text, ll := q.requests[0].continuation, answers[0].LogProb
		words := float64(len(space.FindAllStringIndex(text, -1)) + 1)
		return t.each(map[string]measure{
			"word_perplexity": {ll, words}, "byte_perplexity": {ll, float64(len(text))},
			"bits_per_byte": {ll, float64(len(text))},
		}), "", nil
	}
	text, err := p.apply(answers[0].text)
	if err != nil {
		return nil, "", err
	}
	m, err := t.ofText(q, text)
	return m, text, err
}

// space matches the white space between words. Python's \s includes all white space of Unicode.
var space = regexp.MustCompile(`[\s\v\x1c-\x1f\x{85}\p{Z}]+`)

func right(is bool) measure {
	if is {
		return measure{1, 1}
	}
	return measure{0, 1}
}

// each puts the measures of a task in the order of its metrics.
func (t *Task) each(known map[string]measure) []measure {
	list := make([]measure, len(t.metrics))
	for i, m := range t.metrics {
		list[i] = known[m.name]
	}
	return list
}

func (t *Task) ofChoices(q *question, answers []response) []measure {
	n := len(q.choices)
	best := func(score func(i int) float64) int {
		at := 0
		for i := range n {
			if score(i) > score(at) {
				at = i
			}
		}
		return at
	}
	ll := func(i int) float64 { return answers[i].LogProb }
	gold := q.gold()
	exact := slices.ContainsFunc(gold, func(i int) bool { return answers[i].Greedy })
	known := map[string]measure{"exact_match": right(exact)}
	for name, score := range map[string]func(i int) float64{
		"acc":       ll,
		"acc_norm":  func(i int) float64 { return ll(i) / float64(utf8.RuneCountInString(q.choices[i])) },
		"acc_bytes": func(i int) float64 { return ll(i) / float64(len(q.choices[i])) },
	} {
		known[name] = right(slices.Contains(gold, best(score)))
	}
	if len(answers) > n {
		alone := func(i int) float64 { return ll(i) - ll(n+i) }
		known["acc_mutual_info"] = right(slices.Contains(gold, best(alone)))
	}
	return t.each(known)
}

// gold returns the numbers of the right choices. It leaves out a target that is not among the choices: no answer is
// then right.
func (q *question) gold() (list []int) {
	wanted, several := q.wanted.([]any)
	if !several {
		wanted = []any{q.wanted}
	}
	for _, w := range wanted {
		n, ok := index(w)
		if s, text := w.(string); text {
			n, ok = slices.Index(q.choices, s), true
		}
		if ok && n >= 0 && n < len(q.choices) {
			list = append(list, n)
		}
	}
	return list
}

// ofText compares a text with the target, or with each of several targets.
func (t *Task) ofText(q *question, text string) ([]measure, error) {
	var wanted []string
	switch v := q.wanted.(type) {
	case []any:
		for _, w := range v {
			wanted = append(wanted, jinja.Text(w))
		}
	default:
		if n, ok := index(v); ok && q.choices != nil && n >= 0 && n < len(q.choices) {
			wanted = []string{q.choices[n]}
		} else {
			wanted = []string{jinja.Text(v)}
		}
	}
	list := make([]measure, len(t.metrics))
	for i, m := range t.metrics {
		got, err := m.exact.normal(text)
		if err != nil {
			return nil, err
		}
		for _, w := range wanted {
			if w, err = m.exact.normal(w); err != nil {
				return nil, err
			}
			if w == got {
				list[i].value = 1
			}
		}
		list[i].weight = 1
	}
	return list, nil
}
