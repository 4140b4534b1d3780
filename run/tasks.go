package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"anneal/config"
	"anneal/tasks"
	"anneal/train"
)

// openTasks opens the tasks of a run, on all ranks. A resume does without tasks that the leader cannot find, because
// they are only for reading: it warns.
func (s *session) openTasks() error {
	if s.cfg.Eval.Tasks == "" {
		return nil
	}
	fault := s.readTasks()
	without, err := led(s.world, func() (bool, error) {
		if !errors.Is(fault, fs.ErrNotExist) || !Exists(s.Dir) {
			return false, nil
		}
		s.warnEarly(fmt.Sprintf("the model is not asked the tasks of eval.tasks: %v", fault))
		return true, nil
	})
	if err != nil || without {
		s.exam = nil
		return err
	}
	return s.world.agree(fault)
}

// readTasks reads the tasks with all their data. So errors in them are found before the first step, and later changes
// of the files have no effect.
func (s *session) readTasks() error {
	set, err := tasks.Load(s.cfg.Eval.Tasks)
	if err == nil && set.Generates() != "" {
		err = config.Problem{
			Key: "eval.tasks", Message: fmt.Sprintf("eval.tasks: in the task %s the model writes text, which a run "+
				"does not do", set.Generates()),
			Try: "tasks of another output_type, or anneal eval --tasks after the run",
		}
	}
	if end, none := s.corpus.Tokenizer.EndOfText(); err == nil && none == nil {
		err = s.corpus.Tokenizer.SetAround([]uint32{end}, nil) // as between documents in training
	}
	if err == nil {
		s.told = map[string]bool{}
		s.exam, err = tasks.Prepare(set, s.corpus.Tokenizer, s.cfg.Model.Context, 0)
	}
	return err
}

// asksTasks reports whether tasks are due after the current step.
func (s *session) asksTasks() bool {
	every := s.cfg.Eval.TasksEvery
	return s.exam != nil && (s.done || every > 0 && s.trainer.Position().Step%every == 0)
}

// askTasks scores the model on the tasks, and returns the figures by task and metric.
func (s *session) askTasks(ctx context.Context) (map[string]map[string]train.Number, error) {
	s.watch.enter(evaluating)
	defer s.watch.enter(idle)
	r, err := s.exam.Ask(ctx, scoring{s.trainer}, tasks.Options{})
	if err != nil {
		return nil, err
	}
	figures := map[string]map[string]train.Number{}
	for _, t := range r.Tasks {
		if s.world.leads() && !s.told[t.Task] {
			for _, text := range t.Warnings() { // of the items, which stay the same
				s.Warn(text)
			}
			s.told[t.Task] = true
		}
		figures[t.Task] = map[string]train.Number{}
		for _, m := range t.Metrics {
			figures[t.Task][m.Name] = train.Number(m.Value)
		}
	}
	return figures, nil
}

// scoring presents a model in training to package tasks.
type scoring struct{ *train.Trainer }

// Generate is never called: openTasks refuses tasks that need it.
func (scoring) Generate(context.Context, []tasks.Prompt, func(int)) ([]string, error) {
	panic("run: a model in training does not write")
}
