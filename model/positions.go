package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"anneal/nn"
)

// Apart from causality, attention ignores the order of keys. Positions provide it, layer by layer: rope rotates
// queries and keys (nn.RoPE), alibi lowers the scores of distant keys (nn.ALiBiSlopes), and none leaves order to
// causality (NoPE, Kazemnejad et al. 2023, arXiv 2305.19466). learned belongs to the model, not to a layer: it adds a
// trained vector to the embedding (positions_learned.go).

// positionNames lists the schemes, in the order of error messages.
var positionNames = []string{"rope", "alibi", "learned", "none"}

// ParsePositions parses Config.Positions: one scheme, or a comma-separated list that repeats over the layers. The
// empty text is rope.
func ParsePositions(text string) ([]string, error) {
	if text == "" {
		return []string{"rope"}, nil
	}
	list := strings.Split(text, ",")
	for i, name := range list {
		list[i] = strings.TrimSpace(name)
		if !slices.Contains(positionNames, list[i]) {
			return nil, fmt.Errorf("%q is not one of %s", list[i], strings.Join(positionNames, ", "))
		}
	}
	if len(list) > 1 && slices.Contains(list, "learned") {
		return nil, errors.New("learned positions are added to the embedding and apply to every layer: they do not mix with others")
	}
	return list, nil
}

// positions returns the scheme of a layer. Layers of linear attention have no rotary positions, because their
// features do not depend on the angle between query and key.
func (c Config) positions(layer int) string {
	list, err := ParsePositions(c.Positions)
	if err != nil {
		panic("model: " + err.Error())
	}
	scheme := list[layer%len(list)]
	if _, linear := c.linear(layer); linear && scheme == "rope" {
		return "none"
	}
	return scheme
}

// HasPositions reports whether any layer uses the scheme.
func (c Config) HasPositions(scheme string) bool {
	for i := range c.Layers {
		if c.positions(i) == scheme {
			return true
		}
	}
	return false
}

// setPositions sets the positions of the layer being built.
func (b *builder) setPositions(a *attention) {
	switch c := b.config; c.positions(b.layer) {
	case "rope":
		a.rope = b.rotary(c.RopeTheta, c.RopeScaling)
	case "alibi":
		a.slopes = nn.ALiBiSlopes(c.Heads)
	}
}

// rope is a rotary table with its settings.
type rope struct {
	nn.RoPE
	theta   float64
	scaling nn.RoPEScaling
}

// rotary returns the rotary table with these settings. Layers with equal ones share it.
func (b *builder) rotary(theta float64, scaling nn.RoPEScaling) *rope {
	for _, r := range b.ropes {
		if r.theta == theta && r.scaling == scaling {
			return r
		}
	}
	r := &rope{theta: theta, scaling: scaling}
	b.ropes = append(b.ropes, r)
	return r
}
