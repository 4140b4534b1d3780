package device

import "anneal/tensor"

// NegativeZero sets t to −0, which changes no number that it is added to: x + (−0) is x for every x, also for x = −0.
func NegativeZero(d Device, t *tensor.Tensor) {
	d.Zero(t)
	d.Scale(t, -1)
}
