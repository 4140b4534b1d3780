package bench

import (
	"fmt"
	"slices"
	"strings"

	"anneal/config"
)

// Axes are the ways to share out the work of a step that Ranks compares.
var Axes = []string{"zero", "tensor", "context", "pipeline"}

// longRows is the length of a sequence whose tokens the ranks share.
const longRows = 4096

// alongAxis returns the configuration of one rank, the micro-batches of its steps, and the cases of several ranks that
// make the same steps.
func (o Options) alongAxis(axis string, ranks int) (cfg *config.Config, micro int, cases []RanksCase, err error) {
	if !slices.Contains(Axes, axis) {
		return nil, 0, nil, fmt.Errorf("ranks share no work along %q\n  try one of: %s", axis, strings.Join(Axes, ", "))
	}
	shape := Shapes[o.Shape]
	micro = ranks
	switch axis {
	case "context":
		micro = 1
		if o.Context == 0 {
			o.Context = longRows
		}
		if o.Batch == 0 {
			o.Batch = max(1, shape.Batch*shape.Model.Context/o.Context)
		}
	case "pipeline":
		micro = 4 * ranks
		if o.Batch == 0 {
			o.Batch = max(1, shape.Batch/4)
		}
	}
	if cfg, err = o.config(); err != nil {
		return nil, 0, nil, err
	}
	cfg.Train.BatchTokens *= micro
	for _, name := range casesOf[axis] {
		c := RanksCase{Name: name}
		switch axis {
		case "zero":
			c.Settings = []string{"parallel.zero=" + strings.TrimPrefix(name, "ZeRO ")}
		case "tensor":
			c.Settings = []string{
				fmt.Sprint("parallel.tensor=", ranks), fmt.Sprint("parallel.sequence=", name == "sequence"),
			}
		case "context":
			c.Settings = []string{fmt.Sprint("parallel.context=", ranks), "parallel.attention=" + name}
		case "pipeline":
			c.Settings = []string{fmt.Sprint("parallel.pipeline=", ranks), "parallel.schedule=" + name}
		}
		cases = append(cases, c)
	}
	return cfg, micro, cases, nil
}

// casesOf returns the names of the cases along an axis.
var casesOf = map[string][]string{
	"zero":     {"ZeRO 0", "ZeRO 1", "ZeRO 2", "ZeRO 3"},
	"tensor":   {"tensor", "sequence"},
	"context":  {"ring", "ulysses"},
	"pipeline": {"1f1b", "gpipe", "interleaved:2", "zb-h1"},
}

// configure returns the configuration of a case of several ranks.
func (c *RanksCase) configure(one *config.Config) (*config.Config, error) {
	cfg := one.Clone()
	for _, setting := range append(c.Settings, fmt.Sprint("parallel.ranks=", c.Ranks)) {
		if err := cfg.Override(setting); err != nil {
			return nil, err
		}
	}
	return cfg, cfg.Validate()
}
