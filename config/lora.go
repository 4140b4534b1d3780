package config

import (
	"fmt"
	"path"
	"strings"
)

// CheckTargets returns an error if a pattern of model.lora_targets matches none of the names of a layer's matrices.
func (c *Config) CheckTargets(names []string) error {
	if c.Model.LoRARank == 0 || c.Model.LoRATargets == "" {
		return nil
	}
	for target := range strings.SplitSeq(c.Model.LoRATargets, ",") {
		if target = strings.TrimSpace(target); !matches(target, names) {
			const key = "model.lora_targets"
			return Problem{
				Key: key, Message: fmt.Sprintf("%s: no matrix of a layer has a name like %q", key, target),
				At: c.origins[key].Place(), Try: "some of " + strings.Join(kindsOf(names), ", "),
			}
		}
	}
	return nil
}

// RemoveAdapters sets the keys of adapters to those of a model without any; rule, by which they were merged, becomes
// their origin.
func (c *Config) RemoveAdapters(rule string) {
	for i, value := range []string{"0", "0", "", "false"} {
		c.DeriveText(ofAdapters[i], value, rule)
	}
}

// resolveLoRA derives the scale of adapters: with α = 2·R they are added twice, as usual since Hu et al. 2021.
func (c *Config) resolveLoRA() {
	if m := &c.Model; m.LoRARank > 0 && m.LoRAAlpha == 0 {
		c.DeriveText("model.lora_alpha", fmt.Sprint(2*m.LoRARank), "2 · model.lora_rank")
	}
}

// lora checks adapters, and refuses combinations that they do not support.
func (k *checker) lora() {
	c, m := k.c, &k.c.Model
	k.number("model.lora_alpha", m.LoRAAlpha, 0, 1e6, "[)")
	if !k.between("model.lora_rank", m.LoRARank, 0, 1<<12) || m.LoRARank == 0 {
		return
	}
	for target := range strings.SplitSeq(m.LoRATargets, ",") {
		if _, err := path.Match(strings.TrimSpace(target), ""); err != nil {
			k.fault("model.lora_targets", "attention.*, mlp.down", "model.lora_targets: %q is no pattern of names",
				strings.TrimSpace(target))
		}
	}
	for _, x := range []struct {
		refused bool
		try     string
		why     string
	}{
		{c.Init.From == "", "init.from=DIR, a run or a model of Hugging Face",
			"without init.from: adapters are trained beside weights that exist"},
		{c.Init.EWC > 0, "init.ewc = 0", "with init.ewc: the weights that it holds are frozen"},
		{m.Experts > 0, "a model without experts", "with experts"},
		{c.Optimizer.Name == "schedulefree", "optimizer.name = adamw", "with optimizer.name = schedulefree"},
		{m.MuP, "model.mup = false", "with model.mup"},
		{c.Parallel.Ranks > 1, "parallel.ranks = 1", "on several ranks yet"},
		{strings.HasPrefix(c.Precision, "fp8"), "precision = bf16", "with precision = fp8"},
	} {
		if x.refused {
			k.fault("model.lora_rank", x.try, "model.lora_rank = %d does not work %s", m.LoRARank, x.why)
		}
	}
}
