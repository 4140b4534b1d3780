package train

import (
	"fmt"

	"anneal/config"
	"anneal/device"
	"anneal/model"
	"anneal/precision"
	"anneal/tensor"
)

// teacherPolicy returns the precision policy of a teacher: the student's, but without FP8, whose scales come from
// training.
func teacherPolicy(p precision.Policy) precision.Policy {
	p.FP8 = nil
	return p
}

// layTeacher allocates the model of distill.teacher, whose weights the caller of the trainer fills (Teacher); nil
// without one. It reads rows as long as the student's.
func layTeacher(cfg *config.Config, f *Footprint, m device.Memory, arena func(string) *tensor.Arena) (
	*model.Decoder, error) {
	if !cfg.Distill.On() {
		return nil, nil
	}
	problem := func(key, try, format string, args ...any) error {
		return config.Problem{
			Key: key, At: cfg.Origin(key).Place(), Message: fmt.Sprintf(format, args...), Try: try,
		}
	}
	if cfg.Teacher() == nil {
		return nil, problem("distill.teacher", "`anneal train`, which opens it",
			"distill.teacher = %s was not opened", cfg.Distill.Teacher)
	}
	c := *cfg.Teacher()
	switch d := &cfg.Distill; {
	case c.Vocab != f.Model.Vocab:
		return nil, problem("distill.teacher", "a teacher with the same tokenizer, and as many rows",
			"%s has a vocabulary of %d, but the model that it teaches has %d", d.Teacher, c.Vocab, f.Model.Vocab)
	case c.Context < f.Model.Context:
		return nil, problem("model.context", fmt.Sprintf("model.context = %d or less", c.Context),
			"model.context = %d, but %s reads %d tokens at most", f.Model.Context, d.Teacher, c.Context)
	case d.TopK > c.Vocab:
		return nil, problem("distill.top_k", "a smaller number, such as 64",
			"distill.top_k = %d, but there are %d tokens", d.TopK, c.Vocab)
	}
	if !c.Positions.Learned() && !c.RopeScaling.NeedsOriginal() {
		c.Context = f.Model.Context
	}
	c.LogitBytes, c.Recompute = f.Model.LogitBytes, model.Layout{}
	return model.New(c, model.MemoryOf(m, teacherPolicy(f.Policy), arena(TeacherWeights), nil)), nil
}

// layLessons allocates the teacher's predictions for n tokens; nil without a teacher.
func layLessons(cfg *config.Config, p precision.Policy, a *tensor.Arena, n int) *device.Teacher {
	d := &cfg.Distill
	if !d.On() {
		return nil
	}
	t := model.NewTeacher(a, p, n, d.TopK)
	t.Temperature, t.Weight = d.Temperature, d.Weight
	return t
}

// teach writes the teacher's predictions for the current batch, if there is a teacher and targets are those of the
// data.
func (t *Trainer) teach() {
	if t.teacher != nil && !t.sampled() {
		t.teacher.Teach(t.tape, t.batch)
	}
}

// Teacher returns the model of distill.teacher, whose weights are 0 until the caller fills them; nil without one.
func (t *Trainer) Teacher() *model.Decoder { return t.teacher }

// TeacherFLOPs counts the operations of the forward pass of distill.teacher for a token in a sequence of n; 0 without
// one.
func TeacherFLOPs(cfg *config.Config, p precision.Policy, n int) float64 {
	if !cfg.Distill.On() || cfg.Teacher() == nil {
		return 0
	}
	return model.Outline(*cfg.Teacher(), p).ForwardFLOPs(n)
}
