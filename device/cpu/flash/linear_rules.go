package flash

import (
	"unsafe"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// ruleJobs is the state of calls with other rules than device.AddRule.
type ruleJobs[T vec.Float] struct {
	deltaFwd  deltaForward[T]
	deltaBwd  deltaBackward[T]
	deltaNext deltaCached[T]
	glaFwd    glaForward[T]
	glaBwd    glaBackward[T]
	glaNext   glaCached[T]
}

// forwardOf, backwardOf and cachedOf call the kernels of a rule.
func (l *linear[T]) forwardOf(p *pool.Pool, s shape, out, norm, qkv, gates *tensor.Tensor) {
	switch s.Rule {
	case device.AddRule:
		l.forward(p, s, out, norm, qkv, gates)
	case device.VectorGateRule:
		l.glaForward(p, s, out, norm, qkv, gates)
	default:
		l.deltaForward(p, s, out, norm, qkv, gates)
	}
}

func (l *linear[T]) backwardOf(p *pool.Pool, s shape, dqkv, dgates, dout, out, norm, qkv, gates *tensor.Tensor) {
	switch s.Rule {
	case device.AddRule:
		l.backward(p, s, dqkv, dgates, dout, out, norm, qkv, gates)
	case device.VectorGateRule:
		l.glaBackward(p, s, dqkv, dgates, dout, out, norm, qkv, gates)
	default:
		l.deltaBackward(p, s, dqkv, dgates, dout, out, norm, qkv, gates)
	}
}

func (l *linear[T]) cachedOf(p *pool.Pool, s shape, out, qkv, gates *tensor.Tensor, c *device.Cache, first int) {
	switch s.Rule {
	case device.AddRule:
		l.cached(p, s, out, qkv, gates, c, first)
	case device.VectorGateRule:
		l.glaCached(p, s, out, qkv, gates, c, first)
	default:
		l.deltaCached(p, s, out, qkv, gates, c, first)
	}
}

// predict returns the bytes of scratch memory for calls of a shape on that many workers.
func (l *linear[T]) predict(s *shape, workers int) int {
	var forward, backward carver[T]
	switch z := l.sizes(s); s.Rule {
	case device.AddRule:
		newLinearTile(&forward, z)
		newLinearBackwardTile(&backward, z)
	case device.VectorGateRule:
		newGLAGrad(&backward, z)
	default:
		newDeltaGrad(&backward, z, l.slots(s.length))
	}
	size := int(unsafe.Sizeof(T(0)))
	return workers * roundUp(max(forward.used, backward.used), tensor.Align/size) * size
}
