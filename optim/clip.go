package optim

// ClipScale returns the factor that limits a gradient of the given global norm (Pascanu et al. 2013, arXiv
// 1211.5063), in the convention of PyTorch and Megatron-LM:
//
//	g ← g·min(1, limit/(‖g‖ + 1e-6)),  ‖g‖ over all parameters together
//
// It needs no memory, and no time beyond that of the norm: the optimizer's pass applies the factor. Default: a limit
// of 1; 0 or less disables clipping. If most steps are clipped (clip_rate in metrics.jsonl), the limit determines the
// step size: raise it, or lower the learning rate. For Lion and Muon clipping only changes the weight of a step in
// their momentum.
func ClipScale(norm, limit float64) float64 {
	if limit <= 0 {
		return 1
	}
	return min(1, limit/(norm+1e-6))
}
