package optim

// ClipScale returns the factor that limits a gradient of the given global norm to limit: min(1, limit/(norm+1e-6)), the
// convention of PyTorch and Megatron-LM. A limit of 0 or less means no clipping.
func ClipScale(norm, limit float64) float64 {
	if limit <= 0 {
		return 1
	}
	return min(1, limit/(norm+1e-6))
}
