package model

import (
	"slices"

	"anneal/nn"
)

// A Part is the part of a model that a rank has. The zero value is the whole model.
type Part struct {
	// Tensors is the number of ranks that every layer is cut among (tensor parallelism); 0 or 1 leaves layers whole.
	// Tensor is this rank's number among them.
	Tensor, Tensors int
	// Sequence says that the rank's stream holds only its share of the tokens (sequence parallelism). Tapes that run
	// the part need as many Tensor peers and the same Sequence.
	Sequence bool

	// Chunks are the runs of layers that this rank has (pipeline parallelism), in their order; nil for all layers. The
	// rank that has the first layer has the embedding, and the one that has the last has the final norm and the head.
	Chunks []Span
}

// A Span is the layers [From, To).
type Span struct{ From, To int }

// enters reports whether the part has the embedding, exits whether it has the final norm and the head.
func (p Part) enters() bool { return p.Chunks == nil || p.Chunks[0].From == 0 }
func (p Part) exits(layers int) bool {
	return p.Chunks == nil || p.Chunks[len(p.Chunks)-1].To == layers
}

// chunks returns the runs of layers that this rank has.
func (p Part) chunks(layers int) []Span {
	if p.Chunks == nil {
		return []Span{{0, layers}}
	}
	return p.Chunks
}

// DeclarePart is Declare for a part of the model. Its parameters have the same numbers, names and initial values as in
// the whole model, and it panics like Declare. If the head is tied but not in the same part as the embedding, it is a
// second copy of the embedding, with its own gradient and updates. The gradients of both copies are added.
func DeclarePart(c Config, part Part) *Decoder {
	m := declare(c, part)
	if part.Chunks == nil {
		return m
	}
	here := map[int]bool{}
	m.blocks = slices.DeleteFunc(m.blocks, func(b *block) bool {
		return !slices.ContainsFunc(part.Chunks, func(s Span) bool {
			return s.From <= b.attention.layer && b.attention.layer < s.To
		})
	})
	for _, b := range m.blocks {
		for _, p := range b.params {
			here[p.Number] = true
		}
	}
	if here[m.embed.Number] = part.enters() || c.TieEmbeddings && part.exits(c.Layers); part.enters() {
		for _, p := range m.params {
			here[p.Number] = here[p.Number] || m.atEntry(p)
		}
	}
	if part.exits(c.Layers) {
		for _, p := range m.params {
			if p == m.norm || p == m.head || m.norm.Bias == &p.Param {
				here[p.Number] = true
			}
		}
	}
	m.params = slices.DeleteFunc(m.params, func(p *nn.Param) bool { return !here[p.Number] })
	m.wrap()
	return m
}
