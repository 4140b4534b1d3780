package config

import (
	"fmt"
	"math"

	"anneal/precision"
)

// precision checks the sections that belong to one precision each.
func (k *checker) precision() {
	p, err := precision.Lookup(k.c.Precision)
	if err != nil {
		return // reported with the names
	}
	if p.Scaled() {
		k.lossScale()
	}
	if p.FP8 != nil {
		if k.c.FP8.Attention && k.c.Model.LongformerGlobalProjections && hasLongformer(&k.c.Model) {
			k.fault("fp8.attention", "fp8.attention = false, or model.longformer_global_projections = false",
				"fp8.attention = true does not work with model.longformer_global_projections: the attention of global "+
					"tokens to each other has no FP8 operands")
		}
		k.between("fp8.history", k.c.FP8.History, 1, 1<<16)
		k.between("fp8.margin", k.c.FP8.Margin, 0, 16)
		if k.c.FP8.Scaling == "delayed" && k.c.Average.EMA > 0 {
			k.fault("fp8.scaling", "fp8.scaling = current, or average.ema = 0",
				"fp8.scaling = delayed cannot be combined with average.ema: its scales are measured on the weights, "+
					"not on their average")
		}
	}
}

func (k *checker) lossScale() {
	s := &k.c.LossScale
	if s.Init == 0 {
		k.fault("loss_scale.init", "loss_scale.init = 65536",
			"loss_scale.init = 0 makes every gradient 0: nothing would be learned")
	} else {
		k.number("loss_scale.init", s.Init, 0, math.MaxFloat32, "(]")
	}
	k.between("loss_scale.interval", s.Interval, 1, 1<<40)
	k.between("loss_scale.hysteresis", s.Hysteresis, 1, 1<<40)
	k.number("loss_scale.floor", s.Floor, 0, math.MaxFloat32, "(]")
	if s.Floor > s.Init && s.Init > 0 {
		k.fault("loss_scale.floor", fmt.Sprintf("loss_scale.floor = %g or less", s.Init),
			"loss_scale.floor = %g is above loss_scale.init = %g", s.Floor, s.Init)
	}
}
