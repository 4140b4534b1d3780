package config

import "slices"

// Offload lists what a run keeps in a file instead of memory. The text form is a list of names, or none. A list is not
// changed once it is made.
type Offload []string

// What can be kept in a file.
const (
	OptimizerState = "optimizer"
	Checkpoints    = "checkpoints" // of activations: the inputs of recomputed segments
)

// Has reports whether a name is in the list.
func (o Offload) Has(name string) bool { return slices.Contains(o, name) }

// MarshalText implements encoding.TextMarshaler.
func (o Offload) MarshalText() ([]byte, error) { return namesText(o), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Offload) UnmarshalText(text []byte) (err error) {
	*o, err = readNames(text, []string{OptimizerState, Checkpoints})
	return err
}

// offload refuses what memory.offload cannot keep in a file.
func (k *checker) offload() {
	const key = "memory.offload"
	c := k.c
	for _, x := range []struct {
		part     string
		refused  bool
		what, by string
		why      string
	}{
		{OptimizerState, c.Device != "cpu" && !k.reported("device"), "device = " + c.Device, "device = cpu",
			"state would pass the host's memory on its way"},
		{OptimizerState, c.Optimizer.Name == "sophia", "optimizer.name = sophia", "optimizer.name = adamw",
			"its curvature changes outside of updates"},
		{OptimizerState, c.Optimizer.Name == "schedulefree", "optimizer.name = schedulefree", "optimizer.name = adamw",
			"its state holds the weights that are trained"},
		{OptimizerState, c.Optimizer.Name == "sgd" && c.Optimizer.Momentum == 0, "optimizer.momentum = 0",
			"optimizer.momentum = 0.9", "there is no state"},
		{OptimizerState, c.Init.EWC > 0, "init.ewc", "init.ewc = 0",
			"it keeps the weights that it holds beside the state"},
		{Checkpoints, c.Device != "cpu" && !k.reported("device"), "device = " + c.Device, "device = cpu",
			"activations would pass the host's memory on their way"},
		{Checkpoints, !c.Memory.Recompute.Segments() && !k.reported("memory.recompute"),
			"memory.recompute = " + c.Memory.Recompute.String(), "memory.recompute = every_layer",
			"no segment is recomputed from its input"},
		{Checkpoints, c.Parallel.Pipeline > 1, "parallel.pipeline", "parallel.pipeline = 1",
			"stages have several micro-batches between forward and backward at a time"},
	} {
		if c.Memory.Offload.Has(x.part) && x.refused {
			k.fault(key, x.by+", or "+key+" without "+x.part, "%s = %s does not work with %s: %s",
				key, x.part, x.what, x.why)
		}
	}
}
