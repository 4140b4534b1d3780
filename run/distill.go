package run

import (
	"fmt"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/internal/shellword"
	"anneal/nn"
	"anneal/prepare"
	"anneal/train"
)

// A teacher is opened like initial weights: its shape for the plan, its weights once there is memory for them. The
// run's config.yaml names the checkpoint and the hash of its weights, so that a resumed run learns from the same.

// takeTeacher reads the shape of distill.teacher, if there is one, and which checkpoint it is.
func takeTeacher(cfg *config.Config) error {
	if !cfg.Distill.On() {
		return nil
	}
	_, err := openTeacher(cfg)
	return err
}

func openTeacher(cfg *config.Config) (*initial, error) {
	d := &cfg.Distill
	w, err := openInitial(config.Init{From: d.Teacher, Step: d.Step})
	if err != nil {
		return nil, teacherProblem(cfg, err)
	}
	if w.step > 0 && d.Step == 0 {
		cfg.Derive("distill.step", int(w.step), "the newest checkpoint of "+w.dir)
	}
	cfg.SetTeacher(w.config.Model)
	return w, nil
}

// teacherProblem turns an error about initial weights into one about a teacher.
func teacherProblem(cfg *config.Config, err error) error {
	p, is := err.(config.Problem)
	if !is {
		return fmt.Errorf("distill.teacher: %w", err)
	}
	p.Key = map[string]string{"init.step": "distill.step"}[p.Key]
	if p.Key == "" {
		p.Key = "distill.teacher"
	}
	p.At, p.Message = cfg.Origin(p.Key).Place(), p.Key+": "+p.Message
	return p
}

// loadTeacher fills the trainer's teacher with the weights of cfg.Distill, and records their hash in cfg. All ranks
// read the weights.
func loadTeacher(t *train.Trainer, cfg *config.Config, data *prepare.Corpus) error {
	w, err := openTeacher(cfg)
	if err != nil {
		return err
	}
	key := "distill.teacher"
	if w.tokenizer.Hash() != data.Tokenizer.Hash() {
		return config.Problem{
			Key: key, At: cfg.Origin(key).Place(),
			Message: fmt.Sprintf("%s has another tokenizer than the data, so its tokens are not those of the model",
				w.dir),
			Try: fmt.Sprintf("data built with `anneal data build --tokenizer %s`", shellword.Command(w.path)),
		}
	}
	src, params, err := w.load()
	if err != nil {
		return err
	}
	defer params.Close()
	hash, _, err := checkpoint.HashTensors(weightTensors(src))
	if err != nil {
		return err
	}
	if want := cfg.Distill.Hash; want != "" && want != hash {
		key := "distill.hash"
		return config.Problem{
			Key: key, At: cfg.Origin(key).Place(), Try: "the teacher with which the run began",
			Message: fmt.Sprintf("%s have the hash %.16s…, but distill.hash = %.16s…", w.source(), hash, want),
		}
	}
	if cfg.Distill.Hash == "" {
		cfg.DeriveText("distill.hash", hash, "the hash of what was read")
	}
	from := map[string]*nn.Param{}
	for _, p := range src.Params() {
		from[p.Name] = p
	}
	for _, p := range t.Teacher().Params() {
		x := from[p.Name]
		if x == nil || x.Len() != p.Len() {
			return fmt.Errorf("%s has no parameter %s of %v", w.source(), p.Name, p.Shape)
		}
		copyValues(&p.Value, &x.Value)
	}
	return nil
}
