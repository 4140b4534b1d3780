package device

import "anneal/tensor"

// NegativeZero sets t to −0. Adding −0 changes no number: x + (−0) is x for every x, even for x = −0.
func NegativeZero(d Device, t *tensor.Tensor) {
	d.Zero(t)
	d.Scale(t, -1)
}
