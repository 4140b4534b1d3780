package config

// offload refuses what memory.offload cannot keep in a file.
func (k *checker) offload() {
	const key = "memory.offload"
	c := k.c
	if !c.Memory.Offloads() {
		return
	}
	for _, x := range []struct {
		refused  bool
		what, by string
		why      string
	}{
		{c.Device != "cpu" && !k.reported("device"), "device = " + c.Device, "device = cpu",
			"state would pass the host's memory on its way"},
		{c.Optimizer.Name == "sophia", "optimizer.name = sophia", "optimizer.name = adamw",
			"its curvature changes outside of updates"},
		{c.Optimizer.Name == "schedulefree", "optimizer.name = schedulefree", "optimizer.name = adamw",
			"its state holds the weights that are trained"},
		{c.Optimizer.Name == "sgd" && c.Optimizer.Momentum == 0, "optimizer.momentum = 0", "optimizer.momentum = 0.9",
			"there is no state"},
		{c.Init.EWC > 0, "init.ewc", "init.ewc = 0", "it keeps the weights that it holds beside the state"},
	} {
		if x.refused {
			k.fault(key, x.by+", or "+key+" = none", "%s = optimizer does not work with %s: %s", key, x.what, x.why)
		}
	}
}
