package config

import (
	"fmt"
	"strconv"
)

// Parallel configures how the ranks of a run share its work. Tensor, Context, Sequence, Attention, Wire, SumBlock and
// Outer can change the bits of a result; the other keys cannot.
type Parallel struct {
	Ranks int `yaml:"ranks"`
	Zero  int `yaml:"zero"`

	Tensor    int    `yaml:"tensor"`    // ranks that share every layer
	Sequence  bool   `yaml:"sequence"`  // they also divide the tokens between the products of a layer
	Context   int    `yaml:"context"`   // ranks that share the tokens of a sequence
	Attention string `yaml:"attention"` // how ranks attend to each other's tokens
	Pipeline  int    `yaml:"pipeline"`  // stages
	Schedule  string `yaml:"schedule"`  // of the pipeline

	Timeout  float64 `yaml:"timeout"`   // minutes
	Wire     string  `yaml:"wire"`      // the format in which gradients are sent
	SumBlock int     `yaml:"sum_block"` // micro-batches that are summed before they are sent
	Outer    Outer   `yaml:"outer"`
}

// Outer configures groups of ranks that step separately and synchronise at intervals (DiLoCo, local SGD).
type Outer struct {
	Groups   int     `yaml:"groups"`
	Every    int     `yaml:"every"` // steps
	LR       float64 `yaml:"lr"`
	Momentum float64 `yaml:"momentum"`
}

// On reports whether groups of ranks step separately.
func (o Outer) On() bool { return o.Groups > 1 }

// count returns the number of groups, 1 if there are none.
func (o Outer) count() int { return max(o.Groups, 1) }

// wires are the values of parallel.wire.
var wires = []string{"f32", "bf16", "int8"}

// attentions are the values of parallel.attention.
var attentions = []string{"ring", "ulysses"}

// Mesh returns the sizes of the mesh of ranks.
func (p Parallel) Mesh() (tensor, context, pipeline int) {
	return max(p.Tensor, 1), max(p.Context, 1), max(p.Pipeline, 1)
}

// Shared returns the number of ranks that share a micro-batch.
func (p Parallel) Shared() int {
	t, c, s := p.Mesh()
	return t * c * s
}

// String describes the number of ranks and the axes, such as
//
//	8 ranks: tensor 2 · context 2 · pipeline 2 · data 1
func (p Parallel) String() string {
	if p.Shared() == 1 {
		return counted(p.Ranks, "rank", "ranks")
	}
	t, c, s := p.Mesh()
	return fmt.Sprintf("%s: tensor %d · context %d · pipeline %d · data %d", counted(p.Ranks, "rank", "ranks"),
		t, c, s, p.Ranks/p.Shared())
}

// resolveParallel sets the number of ranks that a mesh needs, if it is not given.
func (c *Config) resolveParallel() {
	if n := c.Parallel.Shared(); c.Origin("parallel.ranks") == (Origin{}) && n > 1 && n <= 1<<16 {
		c.Derive("parallel.ranks", n, "parallel.tensor · parallel.context · parallel.pipeline")
	}
}

// parallel checks the ranks as far as possible without a machine.
func (k *checker) parallel() {
	p := &k.c.Parallel
	k.between("parallel.ranks", p.Ranks, 1, 1<<16)
	if p.Zero < 0 || p.Zero > 3 {
		k.fault("parallel.zero", "parallel.zero = 0, 1, 2 or 3", "parallel.zero = %d is not a stage of ZeRO", p.Zero)
	}
	k.number("parallel.timeout", p.Timeout, 0, 1e6, "(]")
	k.between("parallel.sum_block", p.SumBlock, 1, 1<<20)
	k.mesh()
	k.outer()
}

// outer checks the groups of ranks that step separately. All groups need the same number of micro-batches in every
// step.
func (k *checker) outer() {
	o := &k.c.Parallel.Outer
	k.between("parallel.outer.every", o.Every, 1, 1<<40)
	k.number("parallel.outer.lr", o.LR, 0, 10, "(]")
	k.number("parallel.outer.momentum", o.Momentum, 0, 1, "[)")
	if !k.between("parallel.outer.groups", o.Groups, 0, 1<<10) || !o.On() || k.c.microTokens() < 1 {
		return
	}
	if window := k.c.Guard.Window; window <= maxWindow && window > maxWindow/o.Groups {
		k.fault("guard.window", fmt.Sprintf("guard.window = %d or less, or fewer groups", maxWindow/o.Groups),
			"guard.window = %d is too large for parallel.outer.groups = %d: the windows of all groups do not fit in a "+
				"checkpoint", window, o.Groups)
	}
	for _, x := range []struct {
		given bool
		key   string
	}{{k.c.Eval.Tasks != "", "eval.tasks"}, {k.c.Samples.Every > 0, "samples.every"}} {
		if x.given {
			k.fault(x.key, "leave it out, or train without parallel.outer.groups",
				"%s does not work with parallel.outer.groups: groups have weights of their own", x.key)
		}
	}
	ramp, err := k.c.BatchRamp()
	if err != nil {
		return
	}
	sizes := []int{k.c.Train.BatchTokens}
	for _, s := range ramp.Stages {
		sizes = append(sizes, s.From)
	}
	for _, tokens := range sizes {
		if micro := tokens / k.c.microTokens(); micro >= 1 && micro%o.Groups != 0 {
			k.fault("parallel.outer.groups", "a number of groups that divides it, or another train.micro_batch",
				"parallel.outer.groups = %d, but a step has %s: the groups would not have equally many",
				o.Groups, counted(micro, "micro-batch", "micro-batches"))
			return
		}
	}
}

// microTokens returns the tokens of a micro-batch; 0 if the configuration does not give it.
func (c *Config) microTokens() int { return max(c.Train.MicroBatch, 0) * max(c.Model.Context, 0) }

// busyRanks returns how many ranks have a micro-batch to compute in a full step, if there were any number of ranks.
func (c *Config) busyRanks() int {
	groups, block := c.Parallel.Outer.count(), max(c.Parallel.SumBlock, 1)
	each := max(c.Train.BatchTokens/c.microTokens()/groups, 1)
	return groups * ((each + block - 1) / block)
}

// remarkRanks adds a remark if some ranks of a valid configuration have nothing to do.
func (c *Config) remarkRanks() {
	p, busy := c.Parallel, c.busyRanks()*c.Parallel.Shared()
	if p.Ranks <= busy {
		return
	}
	each := counted(c.Train.BatchTokens/c.microTokens(), "micro-batch", "micro-batches")
	if p.SumBlock > 1 {
		each += ", in blocks of " + strconv.Itoa(p.SumBlock)
	}
	c.Remark(fmt.Sprintf("parallel.ranks = %d, but a step has %s: %s in every step. "+
		"A smaller train.micro_batch or a larger train.batch_tokens gives them work",
		p.Ranks, each, counted(p.Ranks-busy, "rank computes nothing", "ranks compute nothing")))
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
