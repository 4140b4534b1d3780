package config

import (
	"fmt"
	"slices"
)

// heldRules lists the optimizers that init.ewc works with: they treat all elements alike and keep weights in one
// format.
var heldRules = []string{"adamw", "adam", "sgd", "lion", "ademamix"}

// maxEWC keeps rate · init.ewc · importance in the range of FP32: rates are below 1e6, and importances, with a mean of
// 1, at most the number of weights.
const maxEWC = 1e15

// ewc checks the keys of init.ewc.
func (k *checker) ewc() {
	const key = "init.ewc"
	i, p := &k.c.Init, &k.c.Parallel
	k.number(key, i.EWC, 0, maxEWC, "[]")
	if i.EWC == 0 {
		return
	}
	k.between("init.ewc_step", i.EWCStep, 0, 1<<40)
	if name := k.c.Optimizer.Name; !slices.Contains(heldRules, name) && !k.reported("optimizer.name") {
		k.fault(key, "optimizer.name = adamw", "init.ewc does not work with optimizer.name = %s, only with %s", name,
			fmt.Sprint(heldRules))
	}
	if p.Ranks > 1 || p.Outer.On() {
		k.fault(key, "parallel.ranks = 1, with threads", "init.ewc does not yet work with several ranks")
	}
}
