package config

import (
	"fmt"
	"slices"
	"strings"
)

// ofTraining lists the keys of model.* that affect how a model starts and is trained, but not what its weights
// compute.
var ofTraining = []string{"model.init", "model.init_std", "model.zero_init", "model.dropout", "model.stochastic_depth"}

// mayDiffer lists the keys of model.* that may differ from those of initial weights.
var mayDiffer = []string{
	"model.vocab", "model.context", "model.rope_scaling", "model.rope_original_context", "model.router_aux_loss",
	"model.router_z_loss",
}

// ofAdapters lists the keys that may differ if the initial weights have no adapters.
var ofAdapters = []string{"model.lora_rank", "model.lora_alpha", "model.lora_targets", "model.lora_dora"}

// TakeModel takes the shape of a model from was, its config; source names where that is, such as "the weights of DIR".
// Every key of model.* that was not given gets the value of was, except model.vocab, which depends on the tokenizer,
// and keys that only training reads. The length of rows and the scaling of rotary positions may differ. Any other
// difference is a problem that names both values.
func (c *Config) TakeModel(was *Config, source string) error {
	for _, k := range allKeys {
		if ofShape(k.Name) && k.Name != "model.vocab" && k.Name != "model.rope_original_context" && !c.Given(k.Name) {
			c.Take(k.Name, was.value(k), source)
		}
	}
	if key := "model.rope_original_context"; !c.Given(key) {
		c.Take(key, fmt.Sprint(c.originalContext(was)), source)
	}
	if err := c.CheckModel(was, source); err != nil {
		return err
	}
	c.remarkOnPositions(was, source)
	return nil
}

// originalContext returns the context of the first training: the original context of the model's scaling, or else the
// model's context.
func (c *Config) originalContext(was *Config) int {
	switch {
	case !c.Model.RopeScaling.NeedsOriginal():
		return 0
	case was.Model.RopeOriginalContext > 0:
		return was.Model.RopeOriginalContext
	}
	return was.Model.Context
}

// CheckModel refuses a config whose model would not compute the same as that of was; source is as in TakeModel.
func (c *Config) CheckModel(was *Config, source string) error {
	var problems []Problem
	for _, k := range allKeys {
		free := slices.Contains(mayDiffer, k.Name) || was.Model.LoRARank == 0 && slices.Contains(ofAdapters, k.Name)
		if !ofShape(k.Name) || free || c.value(k) == was.value(k) {
			continue
		}
		problems = append(problems, Problem{
			Key: k.Name, At: c.origins[k.Name].Place(),
			Try:     fmt.Sprintf("removing %s: the shape is that of the weights", k.Name),
			Message: fmt.Sprintf("%s = %s, but %s have %s", k.Name, c.value(k), source, was.value(k)),
		})
	}
	if now, then := c.Model.Context, was.Model.Context; was.Model.Positions.Learned() && now > then {
		problems = append(problems, Problem{
			Key: "model.context", At: c.origins["model.context"].Place(),
			Message: fmt.Sprintf("model.context = %d, but %s have learned %d positions and know no later ones",
				now, source, then),
			Try: fmt.Sprintf("model.context = %d or less, or weights with model.positions = rope or alibi", then),
		})
	}
	return asError(problems)
}

// remarkOnPositions adds remarks on positions that are new to the weights of a valid model.
func (c *Config) remarkOnPositions(was *Config, source string) {
	m, then := &c.Model, &was.Model
	switch {
	case m.RopeScaling != then.RopeScaling:
		c.Remark(fmt.Sprintf("model.rope_scaling = %s; %s have %s", m.RopeScaling, source, then.RopeScaling))
	case m.Context > then.Context && m.HasPositions("rope"):
		c.Remark(fmt.Sprintf("model.context = %d is longer than the %d tokens of %s: later positions are new to them "+
			"(model.rope_scaling = yarn:%.3g stretches RoPE)",
			m.Context, then.Context, source, float64(m.Context)/float64(then.Context)))
	}
}

// ofShape reports whether a key affects what the weights of a model compute.
func ofShape(key string) bool {
	return strings.HasPrefix(key, "model.") && !slices.Contains(ofTraining, key)
}

// Given reports whether a file, a recipe or the command line gives a key.
func (c *Config) Given(key string) bool {
	from, has := c.origins[key]
	return has && from.Rule == ""
}

// Take sets a key to its value in a trained model; source is as in TakeModel. It panics if the key or the value is
// invalid.
func (c *Config) Take(key, value, source string) {
	i, ok := keyIndex[key]
	if !ok {
		panic(fmt.Sprintf("config: Take(%q): no such key", key))
	}
	if err := c.set(allKeys[i], value, Origin{From: source}); err != nil {
		panic("config: Take: " + err.Error())
	}
}
