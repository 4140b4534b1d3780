package precision

// LossScale keeps FP16 gradients within range (Micikevicius et al. 2017, arXiv 1710.03740). The gradient of a step's
// mean loss is multiplied by Scale before anything is rounded to FP16, whose smallest number is 2⁻²⁴. The weights'
// FP32 gradients are divided by Scale before their norm is computed. Dynamic scaling follows torch.amp.GradScaler:
//
//	overflow (a gradient is not finite):  skip the update;  Scale ← max(Scale/2, Floor);  Good ← 0
//	otherwise:  Good ← Good + 1;  at Interval of them in a row Scale ← 2·Scale, Good ← 0
//
// With a Hysteresis of n, the first n−1 overflows since the scale last grew do not change it, as in Megatron-LM: an
// unusual batch that overflows is skipped, and the small gradients of other batches keep their scale.
//
// Defaults: Scale 65536, Interval 2000, Floor 1, Hysteresis 1. It costs no memory, but an update is lost now and then.
// BF16, FP8 with scaled tensors, and FP32 do not need it: their exponent range is large enough.
type LossScale struct {
	Dynamic  bool    `json:"dynamic"`
	Scale    float64 `json:"scale"`
	Good     int     `json:"good"`      // updates without overflow since the scale last changed
	Overflow int     `json:"overflows"` // overflows among all updates
	Since    int     `json:"overflows_since_growth,omitempty"`

	Interval   int     `json:"-"`
	Floor      float64 `json:"-"`
	Hysteresis int     `json:"-"` // number of overflows since it grew at which the scale is lowered
}

// Update counts one update and adapts the scale. After an overflow it reports whether another update may succeed,
// because the scale was lowered or more overflows are allowed. A scale that is constant, or at its floor, will
// overflow again.
func (s *LossScale) Update(overflow bool) (adapted bool) {
	if !overflow {
		s.Good++
		if s.Dynamic && s.Good >= s.Interval {
			s.Scale, s.Good, s.Since = 2*s.Scale, 0, 0
		}
		return true
	}
	s.Overflow++
	s.Good = 0
	if !s.Dynamic || s.Scale <= s.Floor {
		return false
	}
	if s.Since++; s.Since >= s.Hysteresis {
		s.Scale = max(s.Scale/2, s.Floor)
	}
	return true
}
