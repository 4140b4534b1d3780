package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	sparse "anneal/attention"
	"anneal/nn"
)

// Apart from causality, attention ignores the order of keys. Positions provide it, layer by layer: rope rotates
// queries and keys (nn.RoPE), alibi lowers the scores of distant keys (nn.ALiBiSlopes), and none leaves order to
// causality (NoPE, Kazemnejad et al. 2023, arXiv 2305.19466). learned belongs to the model, not to a layer: it adds a
// trained vector to the embedding (positions_learned.go).

// positionNames lists the schemes, in the order of error messages.
var positionNames = []string{"rope", "alibi", "learned", "none"}

// Positions are the schemes of a model's layers, which take them in turn. The zero value is rope for all layers. The
// text form is a comma-separated list of schemes. A list is not changed once it is made.
type Positions []string

// Of returns the scheme of a layer.
func (p Positions) Of(layer int) string {
	if len(p) == 0 {
		return "rope"
	}
	return p[layer%len(p)]
}

// Learned reports whether the model has learned positions, which belong to all layers.
func (p Positions) Learned() bool { return p.Of(0) == "learned" }

// String returns the text form.
func (p Positions) String() string {
	if len(p) == 0 {
		return "rope"
	}
	return strings.Join(p, ",")
}

// MarshalText implements encoding.TextMarshaler.
func (p Positions) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Positions) UnmarshalText(text []byte) error {
	list, err := parsePositions(string(text))
	if err == nil {
		*p = list
	}
	return err
}

func parsePositions(text string) (Positions, error) {
	if text == "" {
		return nil, errors.New("it names no scheme")
	}
	list := strings.Split(text, ",")
	for i, name := range list {
		list[i] = strings.TrimSpace(name)
		if !slices.Contains(positionNames, list[i]) {
			return nil, fmt.Errorf("%q is not one of %s", list[i], strings.Join(positionNames, ", "))
		}
	}
	if len(list) > 1 && slices.Contains(list, "learned") {
		return nil, errors.New("learned positions are added to the embedding and apply to every layer: they do not " +
			"mix with others")
	}
	return list, nil
}

// positions returns the scheme of a layer. Layers of linear attention have no rotary positions, because their
// features do not depend on the angle between query and key.
func (c Config) positions(layer int) string {
	scheme := c.Positions.Of(layer)
	if _, linear := c.linear(layer); linear && scheme == "rope" {
		return "none"
	}
	return scheme
}

// HasPositions reports whether any layer uses the scheme.
func (c Config) HasPositions(scheme string) bool {
	// then both lists begin again
	for i := range max(1, min(c.Layers, max(1, len(c.Positions))*max(1, len(c.Attention)))) {
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
		a.rope = b.rotary(c.rotation(b.layer))
	case "alibi":
		a.slopes = b.part.slopes(nn.ALiBiSlopes(c.Heads))
	}
}

// rotation says how a layer's rotary positions turn. Windows never grow beyond their trained length, so the separate
// base of layers with windows is not scaled.
func (c Config) rotation(layer int) rotation {
	if _, window := c.Attention.Of(layer).(sparse.Window); window && c.RopeThetaLocal != 0 {
		return rotation{theta: c.RopeThetaLocal}
	}
	return rotation{c.RopeTheta, c.RopeScaling, c.RopeOriginalContext}
}

// rotation holds the settings of rotary positions: the base, the scaling, and the context that the scaling starts
// from.
type rotation struct {
	theta    float64
	scaling  nn.RoPEScaling
	original int
}

// rope is a rotary table with its settings.
type rope struct {
	nn.RoPE
	rotation
}

// rotary returns the rotary table with these settings. Layers with equal ones share it.
func (b *builder) rotary(settings rotation) *rope {
	for _, r := range b.ropes {
		if r.rotation == settings {
			return r
		}
	}
	r := &rope{rotation: settings}
	b.ropes = append(b.ropes, r)
	return r
}
