package tasks

import "slices"

// A request asks a model for the likelihood of a continuation after a context, for the likelihood of a whole text, or
// for a continuation of a context.
type request struct {
	context      string
	continuation string // or the whole text
}

// A question is an item with its requests and the data to measure the answers.
type question struct {
	item
	requests []request
	choices  []string
	wanted   any
	known    bool // it is among its own examples
}

// questions returns the questions of the first limit items of a task, or of all if limit is 0.
func (t *Task) questions(limit int) (list []question, all int, err error) {
	items, err := t.items(t.splits.evaluated())
	if err != nil {
		return nil, 0, err
	}
	all = len(items)
	if all == 0 {
		return nil, 0, &Problem{At: t.File, Message: "the split " + t.splits.evaluated() + " has no items"}
	}
	if limit > 0 && limit < all {
		items = items[:limit]
	}
	examples, err := t.newExamples()
	if err != nil {
		return nil, 0, err
	}
	for _, it := range items {
		q, err := t.ask(it, examples)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, q)
	}
	return list, all, nil
}

func (t *Task) ask(it item, examples *examples) (q question, err error) {
	q.item = it
	if q.wanted, err = t.wanted(it); err != nil {
		return q, err
	}
	if t.Output == Rolling {
		text, ok := q.wanted.(string)
		if !ok {
			return q, t.targetProblem(it, "not a text")
		}
		q.requests = []request{{continuation: text}}
		return q, nil
	}
	if q.choices, err = t.options(it); err != nil {
		return q, err
	}
	shots, err := examples.next(it)
	if err != nil {
		return q, err
	}
	q.known = t.splits.examples() == t.splits.evaluated() && slices.ContainsFunc(shots, it.equal)
	context, err := t.context(it, shots)
	if err != nil {
		return q, err
	}
	switch t.Output {
	case MultipleChoice:
		for _, c := range q.choices {
			q.requests = append(q.requests, request{context, t.delimiter + c})
		}
		if t.has("acc_mutual_info") {
			for _, c := range q.choices {
				q.requests = append(q.requests, request{"", t.delimiter + c})
			}
		}
	case LogLikelihood:
		text, ok := q.wanted.(string)
		if !ok || text == "" {
			return q, t.targetProblem(it, "not a text to continue with")
		}
		q.requests = []request{{context, text}}
	case Generate:
		q.requests = []request{{context: context}}
	}
	return q, nil
}

func (t *Task) has(name string) bool {
	return slices.ContainsFunc(t.metrics, func(m metric) bool { return m.name == name })
}
