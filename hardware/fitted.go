package hardware

// fitted are the constants by accelerator, as `anneal bench plan --published --fit` finds them on every third
// published run of a source. TestTheConstantsAreThoseOfTheFit checks one of them.
var fitted = map[string]Efficiency{
	"a100-40gb":      {Compute: 0.850, Memory: 0.760, Network: 0.647},
	"a100-80gb":      {Compute: 0.850, Memory: 0.941, Network: 0.313},
	"b200-180gb":     {Compute: 0.743, Memory: 0.617, Network: 0.990},
	"b300-288gb":     {Compute: 0.884, Memory: 0.768, Network: 0.712},
	"gb200-186gb":    {Compute: 0.748, Memory: 0.634, Network: 0.689},
	"gb300-288gb":    {Compute: 0.935, Memory: 0.794, Network: 0.729},
	"h100-80gb":      {Compute: 0.833, Memory: 0.579, Network: 0.990},
	"h100-96gb-500w": {Compute: 0.646, Memory: 0.720, Network: 0.772},
	"tpu-v4":         {Compute: 0.981, Memory: 0.769, Network: 0.735},
	"tpu-v5e":        {Compute: 0.982, Memory: 0.912, Network: 0.716},
	"tpu-v5p":        {Compute: 0.954, Memory: 0.686, Network: 0.753},
	"tpu-v6e":        {Compute: 0.792, Memory: 0.685, Network: 0.765},
	"tpu-v7x":        {Compute: 0.714, Memory: 0.903, Network: 0.990},
	"v100-32gb":      {Compute: 0.954, Memory: 0.960, Network: 0.772},
}

// SetEfficiency replaces the fitted constants of the cluster's accelerator.
func (c *Cluster) SetEfficiency(e Efficiency) {
	a := *c.Accelerator
	a.Fitted = e
	c.Accelerator = &a
}
