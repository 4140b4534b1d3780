package lab

import (
	"fmt"
	"slices"
	"strings"

	"anneal/config"
	"anneal/internal/units"
	"anneal/model"
)

// Family is a configuration at several widths, or at several depths.
type Family struct {
	Config    string   // the YAML file; "" means the defaults
	Overrides []string // section.key=value
	Widths    []int    // values of model.dim, rising; nil means four, from about 64 on, each twice the one before
	Depths    []int    // values of model.layers, rising, at the configuration's width; nil: several widths
	Standard  bool     // the standard parametrisation instead of muP with the smallest model as its base
}

// axis returns the dimension in which the models of a family differ, sizes their sizes in it.
func (f *Family) axis() (name string, sizes []int) {
	if f.Depths != nil {
		return "depth", f.Depths
	}
	return "width", f.Widths
}

// of returns the configuration of a size, with further overrides.
func (f *Family) of(size int, more ...string) (*config.Config, error) {
	set, err := f.settings(size)
	if err != nil {
		return nil, err
	}
	return config.Load(f.Config, slices.Concat(f.Overrides, set, more))
}

// settings returns the overrides of a size besides f.Overrides.
func (f *Family) settings(size int) ([]string, error) {
	cfg, err := f.shape()
	if err != nil {
		return nil, err
	}
	m, list := cfg.Model, f.parametrisation()
	set := func(key string, value int) { list = append(list, fmt.Sprintf("model.%s=%d", key, value)) }
	base := m.Dim
	if f.Depths != nil {
		set("layers", size)
	} else {
		unit := headUnit(m)
		if size <= 0 || size%unit != 0 {
			return nil, config.Problem{
				Key: "model.dim", Message: fmt.Sprintf("a width of %d does not hold whole heads: %d heads of size %d "+
					"share a key-value head", size, m.Heads/m.KVHeads, m.HeadDim),
				Try: fmt.Sprintf("multiples of %d, or another model.head_dim", unit),
			}
		}
		// The head size stays the same and the number of heads grows; the feed-forward layer keeps its ratio.
		set("dim", size)
		set("heads", size/m.HeadDim)
		set("kv_heads", size/unit)
		set("head_dim", m.HeadDim)
		set("ffn", ffnAt(size, m))
		base = f.Widths[0]
	}
	if !f.Standard {
		set("mup_base_dim", base)
		set("mup_base_head_dim", m.HeadDim)
		set("mup_base_ffn", ffnAt(base, m))
		if f.Depths != nil {
			set("mup_base_layers", f.Depths[0])
		}
	}
	return list, nil
}

// Parametrisation returns the name of the rule by which weights, rates and outputs scale with the width.
func Parametrisation(standard bool) string {
	if standard {
		return "standard parametrisation"
	}
	return "muP"
}

// parametrisation returns the overrides that switch muP on or off completely, whatever the configuration has.
func (f *Family) parametrisation() []string {
	if f.Standard {
		return append([]string{"model.mup=false"}, leavesOut("model.mup_")...)
	}
	return []string{"model.mup=true"}
}

// shape returns the configuration at its own width.
func (f *Family) shape() (*config.Config, error) {
	return config.Load(f.Config, slices.Concat(f.Overrides, f.parametrisation()))
}

// leavesOut returns the overrides that undo the settings of a configuration whose keys have this prefix.
func leavesOut(prefix string) []string {
	var list []string
	for _, k := range config.Keys() {
		if !strings.HasPrefix(k.Name, prefix) {
			continue
		}
		value := k.Default
		if k.Rule != "" {
			value = "0"
		}
		list = append(list, k.Name+"="+value)
	}
	return list
}

// setSizes fills in Widths if there are neither widths nor depths, and rejects sizes that cannot show growth.
func (f *Family) setSizes() error {
	if f.Widths != nil && f.Depths != nil {
		return config.Problem{Message: "widths and depths at the same time", Try: "one of both"}
	}
	axis, sizes := f.axis()
	for i := range sizes {
		if len(sizes) < 2 || sizes[i] < 1 || i > 0 && sizes[i] <= sizes[i-1] {
			key, such := "model.dim", "64,128,256"
			if f.Depths != nil {
				key, such = "model.layers", "2,4,8"
			}
			return config.Problem{
				Key: key, Message: fmt.Sprintf("the %ss %s are not at least two ascending numbers", axis,
					units.List("%d", sizes)), Try: fmt.Sprintf("two or more %ss, such as %s", axis, such),
			}
		}
	}
	if sizes != nil {
		return nil
	}
	shape, err := f.shape()
	if err != nil {
		return err
	}
	unit := headUnit(shape.Model)
	first := (63/unit + 1) * unit
	f.Widths = []int{first, 2 * first, 4 * first, 8 * first}
	return nil
}

// headUnit returns the width of the query heads that share a key-value head.
func headUnit(m model.Config) int { return m.HeadDim * (m.Heads / m.KVHeads) }

// ffnAt returns the hidden width of the feed-forward layer at another model.dim.
func ffnAt(width int, m model.Config) int { return max(m.FFN*width/m.Dim, 1) }
