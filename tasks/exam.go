package tasks

import (
	"context"
	"fmt"
	"slices"

	"anneal/tasks/jinja"
	"anneal/tokenizer"
)

// An Exam holds the tasks of a set with all their requests as tokens, so that several models can be asked.
type Exam struct {
	set       *Set
	list      []asked
	sequences []Sequence
	prompts   []Prompt
	of        []part // origin of each sequence, then of each prompt
	tokens    int64  // tokens that a model reads to score the sequences
	scored    int64  // how many of these are scored
}

// asked is a task with its questions.
type asked struct {
	*Task
	questions []question
	all       int // items of the split
}

// part identifies the request from which a sequence or a prompt was made.
type part struct{ task, question, request int }

// Prepare reads the data of a set's tasks and encodes all requests, for models with a context of so many tokens. It
// takes the first limit items of each task, or all if limit is 0. An error is a *Problem, a *DataError, or an error of
// reading files.
func Prepare(s *Set, tok *tokenizer.Tokenizer, context, limit int) (*Exam, error) {
	c, err := newCoder(tok, context)
	if err != nil {
		return nil, err
	}
	x := &Exam{set: s}
	for _, t := range s.Tasks {
		questions, all, err := t.questions(limit)
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", t.Name, err)
		}
		x.list = append(x.list, asked{t, questions, all})
	}
	if err := x.sequence(c); err != nil {
		return nil, err
	}
	return x, x.prompt(c)
}

// sequence makes the sequences of all tasks together, so that tasks with few items do not leave rows partly empty.
func (x *Exam) sequence(c coder) error {
	for i, a := range x.list {
		if a.Output == Generate {
			continue
		}
		for j, q := range a.questions {
			for k, r := range q.requests {
				some := []Sequence(nil)
				if a.Output == Rolling {
					some = c.rolling(r.continuation)
				} else {
					s, err := c.pair(r.context, r.continuation)
					if err != nil {
						return a.text.problem(q.item, "%v", err)
					}
					if k > 0 {
						s.Shared = s.shared(x.sequences[len(x.sequences)-1])
					}
					some = []Sequence{s}
				}
				for _, s := range some {
					x.sequences, x.of = append(x.sequences, s), append(x.of, part{i, j, k})
					x.tokens += int64(len(s.IDs) - 1)
					x.scored += int64(len(s.IDs) - s.From)
				}
			}
		}
	}
	return nil
}

// prompt makes the prompts of all tasks. A prompt that is too long loses its beginning.
func (x *Exam) prompt(c coder) error {
	for i, a := range x.list {
		if a.Output != Generate {
			continue
		}
		room := c.context - a.generation.tokens
		if room < 1 {
			return &Problem{
				At: a.File, Try: fmt.Sprintf("generation_kwargs: {max_gen_toks: %d}", max(c.context/2, 1)),
				Message: fmt.Sprintf("max_gen_toks %d leaves no room for a prompt in the context of %d tokens",
					a.generation.tokens, c.context),
			}
		}
		for j, q := range a.questions {
			ids := c.encode(q.requests[0].context)
			if len(ids) == 0 {
				return a.text.problem(q.item, "there is nothing to continue")
			}
			if drop := len(ids) - room; drop > 0 {
				ids = slices.Clone(ids[drop:]) // so that what is dropped is not kept
			}
			x.prompts = append(x.prompts, Prompt{ids, a.generation.until, a.generation.tokens})
			x.of = append(x.of, part{i, j, 0})
		}
	}
	return nil
}

// A Model answers the requests of [Exam.Ask].
type Model interface {
	// LogLikelihoods scores sequences, whether or not they share beginnings. progress takes the number of tokens read;
	// it may be nil.
	LogLikelihoods(ctx context.Context, list []Sequence, progress func(tokens int64)) ([]Likelihood, error)
	// Generate writes the most likely continuation of each prompt. progress may be called from several goroutines, and
	// may be nil.
	Generate(ctx context.Context, list []Prompt, progress func(done int)) ([]string, error)
}

// A Prompt is a list of tokens that a model continues until a text of Stop, a number of tokens, or the end of the
// text.
type Prompt struct {
	IDs    []int32
	Stop   []string
	Tokens int
}

// Options of Ask.
type Options struct {
	Progress func(done, total int64, unit string) // may be nil; the unit is tokens or prompts
	Sample   func(Sample) error                   // takes each item with its answers, in their order; may be nil
	By       string                               // a field of items, whose values divide the figures; may be ""
}

// Ask sends all requests to a model and measures its answers.
func (x *Exam) Ask(ctx context.Context, m Model, o Options) (*Result, error) {
	if o.By != "" && !x.has(o.By) {
		return nil, &Problem{Message: "no task has items with the field " + clip(o.By)}
	}
	answers, err := x.answers(ctx, m, o)
	if err != nil {
		return nil, err
	}
	r := &Result{
		Tasks: []TaskResult{}, Groups: []GroupResult{}, Tokens: x.tokens, Scored: x.scored, Prompts: len(x.prompts),
	}
	for i := range x.list {
		t, err := x.list[i].result(answers[i], o)
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", x.list[i].Name, err)
		}
		r.Tasks = append(r.Tasks, t)
	}
	for _, g := range x.set.groups {
		r.Groups = append(r.Groups, g.result(r.Tasks))
	}
	return r, nil
}

// answers returns a model's answers by task, question and request.
func (x *Exam) answers(ctx context.Context, m Model, o Options) ([][][]response, error) {
	all := make([][][]response, len(x.list))
	for i, a := range x.list {
		all[i] = make([][]response, len(a.questions))
		for j, q := range a.questions {
			all[i][j] = make([]response, len(q.requests))
			for k := range q.requests {
				all[i][j][k].Greedy = true
			}
		}
	}
	tell := func(done, total int64, unit string) {
		if o.Progress != nil {
			o.Progress(done, total, unit)
		}
	}
	if len(x.sequences) > 0 {
		list, err := m.LogLikelihoods(ctx, x.sequences, func(n int64) { tell(n, x.tokens, "tokens") })
		if err != nil {
			return nil, err
		}
		for i, l := range list {
			a := &all[x.of[i].task][x.of[i].question][x.of[i].request]
			a.LogProb, a.Greedy = a.LogProb+l.LogProb, a.Greedy && l.Greedy
		}
	}
	if n := len(x.prompts); n > 0 {
		texts, err := m.Generate(ctx, x.prompts, func(done int) { tell(int64(done), int64(n), "prompts") })
		if err != nil {
			return nil, err
		}
		for i, text := range texts {
			of := x.of[len(x.sequences)+i]
			all[of.task][of.question][0].text = text
		}
	}
	return all, nil
}

// result measures the answers of a task.
func (a *asked) result(answers [][]response, o Options) (TaskResult, error) {
	r := TaskResult{
		Task: a.Name, Alias: a.Alias, Output: a.Output, Shots: a.Shots, Items: len(a.questions), Of: a.all,
	}
	rows := make([][][]measure, len(a.filters)) // by filter, item and metric
	for f, p := range a.filters {
		for j := range a.questions {
			q := &a.questions[j]
			list, text, err := a.measures(q, answers[j], p)
			if err != nil {
				return r, fmt.Errorf("item %d, filter %s: %w", q.number, p.name, err)
			}
			rows[f] = append(rows[f], list)
			if o.Sample == nil {
				continue
			}
			if err := o.Sample(a.sample(q, answers[j], p, text, list)); err != nil {
				return r, err
			}
		}
	}
	for j := range a.questions {
		if q := &a.questions[j]; q.known {
			r.Known = append(r.Known, q.number)
		}
	}
	if a.Output == MultipleChoice {
		for j := range a.questions {
			if q := &a.questions[j]; len(q.gold()) == 0 {
				r.Astray = append(r.Astray, q.number)
			}
		}
	}
	r.Metrics = a.figures(rows, nil)
	values, items := a.by(o.By)
	for _, v := range values {
		r.Parts = append(r.Parts, PartResult{o.By, v, len(items[v]), a.figures(rows, items[v])})
	}
	return r, nil
}

// figures aggregates the measures of some items, or of all if they are nil.
func (a *asked) figures(rows [][][]measure, items []int) (list []MetricResult) {
	if items == nil {
		for j := range a.questions {
			items = append(items, j)
		}
	}
	for f, p := range a.filters {
		for k, m := range a.metrics {
			var column []measure
			for _, j := range items {
				column = append(column, rows[f][j][k])
			}
			value, stderr := aggregate(m.name, column)
			list = append(list, MetricResult{m.name, p.name, Number(value), Number(stderr), m.higher})
		}
	}
	return list
}

// by returns the values of a field, as they first appear, and the items that have each; none if no item has the field.
func (a *asked) by(field string) (values []string, items map[string][]int) {
	items = map[string][]int{}
	for j := range a.questions {
		value, ok := a.questions[j].values[field]
		if !ok {
			continue
		}
		text := jinja.Text(value)
		if items[text] == nil {
			values = append(values, text)
		}
		items[text] = append(items[text], j)
	}
	return values, items
}

// has reports whether items of a task have a field.
func (x *Exam) has(field string) bool {
	return slices.ContainsFunc(x.list, func(a asked) bool {
		_, ok := a.questions[0].values[field]
		return ok
	})
}
