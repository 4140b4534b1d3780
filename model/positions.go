package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"anneal/nn"
)

// Attention itself does not see the order of keys but for causality. Positions tells it, layer by layer: rope turns queries
// and keys (nn.RoPE), alibi lowers the scores of far keys (nn.ALiBiSlopes), none leaves order to causality alone (NoPE,
// Kazemnejad et al. 2023, arXiv 2305.19466), and learned, which is of the model and not of a layer, adds a trained vector to
// the embedding (positions_learned.go).

// positionNames are the schemes in the order in which errors list them.
var positionNames = []string{"rope", "alibi", "learned", "none"}

// ParsePositions reads Config.Positions: one scheme, or some with commas between them that the layers take in turn. The
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

// positions returns the scheme of a layer. Features of linear attention do not go by the angle between query and key: such a layer
// has no rotary positions.
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

// HasPositions reports whether a layer has positions of a scheme.
func (c Config) HasPositions(scheme string) bool {
	for i := range c.Layers {
		if c.positions(i) == scheme {
			return true
		}
	}
	return false
}

// setPositions gives the attention of the layer being built its positions. Rotary tables are one for all layers.
func (b *builder) setPositions(a *attention) {
	switch c := b.config; c.positions(b.layer) {
	case "rope":
		a.rope = &b.rope
	case "alibi":
		a.slopes = nn.ALiBiSlopes(c.Heads)
	}
}
