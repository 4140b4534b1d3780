package attention

import (
	"fmt"
	"strings"

	"anneal/device"
)

// Description is a pattern for rows of one length, with its cost.
type Description struct {
	Pattern string `json:"pattern"` // with all its options
	Layers  int    `json:"layers"`  // number of layers with this pattern
	Count

	layout        *device.Layout
	length, heads int
}

// Describe parses the patterns of a model's layers and describes the distinct ones, in order, for rows of length
// tokens. If layers is 0, Describe takes as many layers as give every pattern of the list, and every stage of a pattern
// that depends on the depth, its turn.
func Describe(list string, length, heads, layers int, seed uint64) ([]Description, error) {
	patterns, err := ParseList(list)
	if err != nil {
		return nil, err
	}
	patterns = patterns.Resolve(length, seed)
	if layers == 0 {
		most := 1
		for _, p := range patterns {
			most = max(most, len(stages(p)))
		}
		layers = len(patterns) * most
	}
	var descriptions []Description
	at := map[string]int{}
	for layer := range layers {
		p := stage(patterns.Of(layer), layer, layers)
		if i, ok := at[p.String()]; ok {
			descriptions[i].Layers++
			continue
		}
		at[p.String()] = len(descriptions)
		l, err := Compile(p, length, heads, layer)
		if err != nil {
			return nil, err
		}
		c := Measure(l, length, heads)
		if linear, ok := p.(Linear); ok {
			c.Cost = linear.cost(length)
		}
		descriptions = append(descriptions, Description{p.String(), 1, c, l, length, heads})
	}
	return descriptions, nil
}

// Panels returns panels of the first heads with distinct graphs, at most most.
func (d Description) Panels(most int) []Panel {
	var panels []Panel
	drawn := map[*device.Graph]bool{}
	for h := 0; h < d.heads && len(panels) < most; h++ {
		g := d.graph(h)
		if !drawn[g] {
			panels = append(panels, d.Panel(h))
		}
		drawn[g] = true
	}
	return panels
}

// graph returns the graph of a head; nil for full attention.
func (d Description) graph(head int) *device.Graph {
	if d.layout == nil {
		return nil
	}
	return d.layout.Of(head)
}

// Panel returns the panel of one head.
func (d Description) Panel(head int) Panel {
	var alike []string
	for h := range d.heads {
		if d.graph(h) == d.graph(head) {
			alike = append(alike, fmt.Sprint(h))
		}
	}
	heads := "heads " + strings.Join(alike, ", ")
	switch {
	case len(alike) == d.heads:
		heads = "all heads"
	case len(alike) == 1:
		heads = "head " + alike[0]
	case len(alike) > 4:
		heads = "heads " + strings.Join(alike[:3], ", ") + ", …"
	}
	own := d.layout
	if g := d.graph(head); g != nil {
		own = &device.Layout{Len: own.Len, Graphs: []device.Graph{*g}}
	}
	c := Measure(own, d.length, 1)
	return Panel{
		Title: d.Pattern, Heads: heads, Caption: fmt.Sprintf("density %s, mean %.1f keys, most %d",
			Percent(c.Density), c.Mean, c.Max), Layout: d.layout, Head: head, Length: d.length,
	}
}

// Percent formats a share with about three digits.
func Percent(share float64) string {
	switch p := 100 * share; {
	case p >= 99.95:
		return fmt.Sprintf("%.0f %%", p)
	case p >= 10:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.2f %%", p)
	}
}
