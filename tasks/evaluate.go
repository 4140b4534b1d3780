package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"anneal/tokenizer"
)

// A Model is asked by [Evaluate].
type Model interface {
	// Context returns how many tokens the model reads at most.
	Context() int
	// LogLikelihoods scores sequences. progress takes the number of tokens read, and may be called from one goroutine.
	LogLikelihoods(ctx context.Context, list []Sequence, progress func(tokens int64)) ([]Likelihood, error)
	// Generate writes the most likely continuation of each prompt.
	Generate(ctx context.Context, list []Prompt, progress func(done int)) ([]string, error)
}

// A Prompt is tokens that a model continues, up to a text of Stop, a number of tokens, or the end of the text.
type Prompt struct {
	IDs    []int32
	Stop   []string
	Tokens int
}

// Options of Evaluate.
type Options struct {
	Limit    int                                  // items of each task; 0: all
	Progress func(done, total int64, unit string) // may be nil; the unit is tokens or prompts
	// takes each item of each task with its answers, in their order; may be nil
	Sample func(Sample) error
}

// Number is a figure of a result; NaN is null in JSON.
type Number float64

func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// MetricResult is a figure of a task with its standard error.
type MetricResult struct {
	Name           string `json:"metric"`
	Filter         string `json:"filter"`
	Value          Number `json:"value"`
	Stderr         Number `json:"stderr"` // NaN where it is not known
	HigherIsBetter bool   `json:"higher_is_better"`
}

// TaskResult is the figures of a task.
type TaskResult struct {
	Task    string         `json:"task"`
	Alias   string         `json:"alias"`
	Output  Output         `json:"output_type"`
	Shots   int            `json:"num_fewshot"`
	Items   int            `json:"items"` // that were evaluated
	Of      int            `json:"of"`    // that there are
	Metrics []MetricResult `json:"metrics"`
}

// Result is the figures of a Set.
type Result struct {
	Tasks   []TaskResult  `json:"tasks"`
	Groups  []GroupResult `json:"groups"`
	Tokens  int64         `json:"tokens"`  // that the model read to score continuations
	Scored  int64         `json:"scored"`  // of them, that were scored
	Prompts int           `json:"prompts"` // that the model continued
}

// asked is a task with its questions.
type asked struct {
	*Task
	questions []question
	all       int
	answers   [][]response // by question and request
}

// part says which sequence belongs to which request.
type part struct{ task, question, request int }

// Evaluate asks a model all tasks of a set. It asks them together, so that what has few items wastes nothing.
func Evaluate(ctx context.Context, s *Set, tok *tokenizer.Tokenizer, m Model, o Options) (*Result, error) {
	coder, err := newCoder(tok, m.Context())
	if err != nil {
		return nil, err
	}
	list := make([]asked, len(s.Tasks))
	for i, t := range s.Tasks {
		questions, all, err := t.questions(o.Limit)
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", t.Name, err)
		}
		a := asked{t, questions, all, make([][]response, len(questions))}
		for j, q := range questions {
			a.answers[j] = make([]response, len(q.requests))
		}
		list[i] = a
	}
	r := &Result{Tasks: []TaskResult{}, Groups: []GroupResult{}}
	if err := score(ctx, list, coder, m, o, r); err != nil {
		return nil, err
	}
	if err := write(ctx, list, coder, m, o, r); err != nil {
		return nil, err
	}
	for _, a := range list {
		t, err := a.result(o.Sample)
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", a.Name, err)
		}
		r.Tasks = append(r.Tasks, t)
	}
	for _, g := range s.groups {
		x, err := g.result(r.Tasks)
		if err != nil {
			return nil, err
		}
		r.Groups = append(r.Groups, x)
	}
	return r, nil
}

// score asks how likely continuations are.
func score(ctx context.Context, list []asked, coder coder, m Model, o Options, r *Result) error {
	var sequences []Sequence
	var parts []part
	for i := range list {
		for j, q := range list[i].questions {
			for k, x := range q.requests {
				var some []Sequence
				switch list[i].Output {
				case Generate:
				case Rolling:
					some = coder.rolling(x.continuation)
				default:
					one, err := coder.pair(x.context, x.continuation)
					if err != nil {
						return list[i].text.problem(q.item, "%v", err)
					}
					some = []Sequence{one}
				}
				list[i].answers[j][k].Greedy = true
				for _, s := range some {
					sequences, parts = append(sequences, s), append(parts, part{i, j, k})
					r.Tokens += int64(len(s.IDs) - 1)
					r.Scored += int64(len(s.IDs) - s.From)
				}
			}
		}
	}
	if len(sequences) == 0 {
		return nil
	}
	likelihoods, err := m.LogLikelihoods(ctx, sequences, func(tokens int64) {
		if o.Progress != nil {
			o.Progress(tokens, r.Tokens, "tokens")
		}
	})
	for i, l := range likelihoods {
		a := &list[parts[i].task].answers[parts[i].question][parts[i].request]
		a.LogProb += l.LogProb
		a.Greedy = a.Greedy && l.Greedy
	}
	return err
}

// write lets the model continue prompts.
func write(ctx context.Context, list []asked, coder coder, m Model, o Options, r *Result) error {
	var prompts []Prompt
	var parts []part
	for i, a := range list {
		if a.Output != Generate {
			continue
		}
		if room := m.Context() - a.generation.tokens; room < 1 {
			return fmt.Errorf("task %s: %w", a.Name, &Problem{
				At: a.File, Try: fmt.Sprintf("generation_kwargs: {max_gen_toks: %d}", m.Context()/2),
				Message: fmt.Sprintf("max_gen_toks %d leaves no room for a prompt in the context of %d tokens",
					a.generation.tokens, m.Context()),
			})
		}
		for j, q := range a.questions {
			ids := coder.encode(q.requests[0].context)
			ids = ids[max(len(ids)-(m.Context()-a.generation.tokens), 0):]
			prompts, parts = append(prompts, Prompt{ids, a.generation.until, a.generation.tokens}), append(parts, part{i, j, 0})
		}
	}
	if r.Prompts = len(prompts); r.Prompts == 0 {
		return nil
	}
	texts, err := m.Generate(ctx, prompts, func(done int) {
		if o.Progress != nil {
			o.Progress(int64(done), int64(len(prompts)), "prompts")
		}
	})
	for i, text := range texts {
		list[parts[i].task].answers[parts[i].question][0].text = text
	}
	return err
}

// result measures the answers of a task.
func (a *asked) result(sample func(Sample) error) (TaskResult, error) {
	r := TaskResult{
		Task: a.Name, Alias: a.Alias, Output: a.Output, Shots: a.Shots, Items: len(a.questions), Of: a.all,
	}
	for _, p := range a.filters {
		columns := make([][]measure, len(a.metrics))
		for j := range a.questions {
			q := &a.questions[j]
			list, text, err := a.measures(q, a.answers[j], p)
			if err != nil {
				return r, err
			}
			for k, m := range list {
				columns[k] = append(columns[k], m)
			}
			if sample != nil {
				if err := sample(a.sample(q, a.answers[j], p, text, list)); err != nil {
					return r, err
				}
			}
		}
		for k, m := range a.metrics {
			value, stderr := aggregate(m.name, columns[k])
			r.Metrics = append(r.Metrics, MetricResult{m.name, p.name, Number(value), Number(stderr), m.higher})
		}
	}
	return r, nil
}
