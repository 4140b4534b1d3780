package config

// scheduleFree refuses combinations that do not work with schedule-free optimizers, whose trained weights are their
// own average.
func (k *checker) scheduleFree() {
	const name = "optimizer.name = schedulefree"
	c := k.c
	if c.Optimizer.Name != "schedulefree" {
		return
	}
	if s := c.Schedule.Name; s != "constant" && !k.reported("schedule.name") {
		k.fault("schedule.name", "schedule.name = constant, whose warmup it uses, or optimizer.name = adamw",
			"schedule.name = %s does not work with %s: its average takes the place of a rate that falls", s, name)
	}
	if c.Train.BatchRamp.Given() {
		k.fault("train.batch_ramp", "a constant train.batch_tokens, or optimizer.name = adamw",
			"train.batch_ramp does not work with %s, whose average counts a warmup in updates and equal batches", name)
	}
	if c.Average.EMA > 0 {
		k.fault("average.ema", "average.ema = 0", "average.ema does not work with %s, which averages already", name)
	}
	if c.Precision == "bf16_sr" {
		k.fault("precision", "precision = bf16", "precision = bf16_sr does not work with %s: an average of weights "+
			"with 8 bits does not move", name)
	}
	if c.Precision == "fp8" && c.FP8.Scaling == "delayed" {
		k.fault("fp8.scaling", "fp8.scaling = current", "fp8.scaling = delayed does not work with %s: its scales are "+
			"measured at other weights than those that are trained", name)
	}
	if c.Parallel.Outer.On() {
		k.fault("parallel.outer.groups", "parallel.outer.groups = 0, or optimizer.name = adamw",
			"parallel.outer.groups does not work with %s: groups would meet at weights that are not the average", name)
	}
}
