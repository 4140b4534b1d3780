package optim

// ClipScale returns the factor that limits a gradient of the given global norm (Pascanu et al. 2013, arXiv 1211.5063), in the
// convention of PyTorch and Megatron-LM:
//
//	g ← g·min(1, limit/(‖g‖ + 1e-6)),  ‖g‖ over all parameters together
//
// No memory, and no time beside that of the norm: the factor goes into the optimizer's pass. Default: a limit of 1; 0 or less
// clips nothing. Where most steps are clipped (clip_rate in metrics.jsonl) the limit sets the rate: raise it, or lower the
// learning rate. Lion and Muon take no notice of it but in how a step weighs in their momentum.
func ClipScale(norm, limit float64) float64 {
	if limit <= 0 {
		return 1
	}
	return min(1, limit/(norm+1e-6))
}
