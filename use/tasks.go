package use

import (
	"context"

	"anneal/tasks"
	"anneal/train"
)

// Prepare makes tokens of tasks for the model; see [tasks.Prepare].
func (r *Trained) Prepare(s *tasks.Set, limit int) (*tasks.Exam, error) {
	return tasks.Prepare(s, r.Tokenizer, r.Context(), limit)
}

// Ask runs the prepared tasks on the model, in rows of the run's context. Generated texts consist of the most likely
// tokens.
func (r *Trained) Ask(ctx context.Context, x *tasks.Exam, o tasks.Options) (*tasks.Result, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	e, err := train.NewEvaluator(r.Config, r.Policy, r.dev, r.Model)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return x.Ask(ctx, answering{e, r}, o)
}

// answering presents a trained model to package tasks.
type answering struct {
	*train.Evaluator
	r *Trained
}

// Generate continues the prompts as GenerateMany does.
func (a answering) Generate(ctx context.Context, list []tasks.Prompt, progress func(done int)) ([]string, error) {
	openings := make([]opening, len(list))
	for i, p := range list {
		openings[i] = opening{p.IDs, GenerateOptions{Stop: p.Stop, MaxTokens: p.Tokens}}
	}
	made, err := a.r.continueAll(ctx, openings, progress)
	texts := make([]string, len(made))
	for i, c := range made {
		texts[i] = c.Text
	}
	return texts, err
}
