package use

import (
	"context"
	"strings"

	"anneal/tasks"
	"anneal/train"
)

// Prepare makes tokens of tasks for the model; see [tasks.Prepare].
func (r *Trained) Prepare(s *tasks.Set, limit int) (*tasks.Exam, error) {
	return tasks.Prepare(s, r.Tokenizer, r.Context(), limit)
}

// Ask asks the model what was prepared for it, in rows of the run's context. What it writes are the most likely tokens.
func (r *Trained) Ask(ctx context.Context, x *tasks.Exam, o tasks.Options) (*tasks.Result, error) {
	e, err := train.NewEvaluator(r.Config, r.Policy, r.dev, r.Model)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return x.Ask(ctx, answering{e, r}, o)
}

// answering is a trained model that tasks are asked of.
type answering struct {
	*train.Evaluator
	r *Trained
}

// Generate continues as many prompts at a time as GenerateMany does.
func (a answering) Generate(ctx context.Context, list []tasks.Prompt, progress func(done int)) ([]string, error) {
	texts := make([]string, len(list))
	err := a.r.eachPrompt(ctx, len(list), progress, func(ctx context.Context, w *writer, i int) error {
		var text strings.Builder
		w.text.ids = append([]int32{}, list[i].IDs...)
		o := GenerateOptions{Stop: list[i].Stop, MaxTokens: list[i].Tokens}
		_, err := w.text.follow(ctx, o, func(piece string) { text.WriteString(piece) })
		texts[i] = text.String()
		return err
	})
	return texts, err
}
