package config

import "anneal/model"

// Distill configures what a model learns from a teacher besides its data (model/distill.go).
type Distill struct {
	Teacher     string  `yaml:"teacher"`
	Step        int     `yaml:"step"`
	Hash        string  `yaml:"hash"`
	Temperature float64 `yaml:"temperature"`
	Weight      float64 `yaml:"weight"`
	TopK        int     `yaml:"top_k"`
}

// On reports whether there is a teacher.
func (d *Distill) On() bool { return d.Teacher != "" }

// SetTeacher sets the configuration of the model in distill.teacher, which no key holds. Memory and operations depend
// on it.
func (c *Config) SetTeacher(m model.Config) { c.teacher = &m }

// Teacher returns the model of distill.teacher; nil unless SetTeacher was called.
func (c *Config) Teacher() *model.Config { return c.teacher }

// distill checks the keys of distillation, and refuses combinations that do not work with it.
func (k *checker) distill() {
	c, d := k.c, &k.c.Distill
	k.number("distill.temperature", d.Temperature, 0, 1e3, "(]")
	k.number("distill.weight", d.Weight, 0, 1, "(]")
	k.between("distill.top_k", d.TopK, 1, 1<<16)
	k.between("distill.step", d.Step, 0, 1<<40)
	if !d.On() {
		return
	}
	if v := c.Model.Vocab; v > 0 && d.TopK > v {
		k.fault("distill.top_k", "a smaller number, such as 64",
			"distill.top_k = %d, but there are %d tokens", d.TopK, v)
	}
	if c.Parallel.Shared() > 1 {
		k.fault("distill.teacher", "parallel.tensor = parallel.context = parallel.pipeline = 1",
			"distill.teacher does not work with parallel.tensor, parallel.context or parallel.pipeline: "+
				"no rank has all logits of whole rows")
	}
}
