package config

// moments refuses moments in BF16 with precision fp64, because no kernel rounds FP64 to BF16.
func (k *checker) moments() {
	const key = "optimizer.moments"
	if o := &k.c.Optimizer; o.Moments == "bf16" && k.c.Precision == "fp64" && !k.reported(key) {
		k.fault(key, key+" = f32", "%s = bf16 does not work with precision = fp64, whose moments are not rounded", key)
	}
}
