package precision

// LossScale keeps FP16 gradients within range (Micikevicius et al. 2017, arXiv 1710.03740). The gradient of a step's mean
// loss is multiplied by Scale before anything of it is rounded to FP16, whose smallest number is 2⁻²⁴, and Scale is divided
// out of the weights' FP32 gradients before their norm is taken. Dynamic scaling follows torch.amp.GradScaler:
//
//	overflow (a gradient is not finite):  skip the update;  Scale ← max(Scale/2, Floor);  Good ← 0
//	otherwise:  Good ← Good + 1;  at Interval of them in a row Scale ← 2·Scale, Good ← 0
//
// Defaults: Scale 65536, Interval 2000, Floor 1. It costs no memory, and an update now and then. It is not for BF16, FP8 with
// scaled tensors, or FP32, which have the exponents to do without.
type LossScale struct {
	Dynamic  bool    `json:"dynamic"`
	Scale    float64 `json:"scale"`
	Good     int     `json:"good"`      // updates without overflow since the scale last changed
	Overflow int     `json:"overflows"` // of all updates

	Interval int     `json:"-"`
	Floor    float64 `json:"-"`
}

// Update counts one update and adapts the scale. After an overflow it reports whether the next update has a chance: a scale
// that is constant, or at its floor, overflows again.
func (s *LossScale) Update(overflow bool) (adapted bool) {
	if !overflow {
		s.Good++
		if s.Dynamic && s.Good >= s.Interval {
			s.Scale, s.Good = 2*s.Scale, 0
		}
		return true
	}
	s.Overflow++
	s.Good = 0
	if !s.Dynamic || s.Scale <= s.Floor {
		return false
	}
	s.Scale = max(s.Scale/2, s.Floor)
	return true
}
