package config

import (
	"fmt"
	"math"
	"strings"

	"anneal/precision"
)

// lossScale checks the loss scale of a precision that has one, and that no other is given one.
func (k *checker) lossScale() {
	s, name := &k.c.LossScale, k.c.Precision
	p, err := precision.Lookup(name)
	if err != nil {
		return // reported with the names
	}
	if !p.Scaled() {
		for _, key := range allKeys {
			if v := k.c.value(key); strings.HasPrefix(key.Name, "loss_scale.") && v != key.Default {
				k.fault(key.Name, "precision = fp16, or leave loss_scale out", "%s = %s has no effect: only fp16 needs a loss scale, and precision = %s", key.Name, v, name)
			}
		}
		return
	}
	if s.Init == 0 {
		k.fault("loss_scale.init", "loss_scale.init = 65536", "loss_scale.init = 0 would make every gradient 0, so that nothing is learnt")
	} else {
		k.number("loss_scale.init", s.Init, 0, math.MaxFloat32, "(]")
	}
	k.between("loss_scale.interval", s.Interval, 1, 1<<40)
	k.number("loss_scale.floor", s.Floor, 0, math.MaxFloat32, "(]")
	if s.Floor > s.Init && s.Init > 0 {
		k.fault("loss_scale.floor", fmt.Sprintf("loss_scale.floor = %g or less", s.Init), "loss_scale.floor = %g is above loss_scale.init = %g", s.Floor, s.Init)
	}
}
