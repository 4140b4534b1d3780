package train

import (
	"math"

	"anneal/autograd"
	"anneal/model"
	"anneal/nn"
	"anneal/optim"
	"anneal/tensor"
)

// LayerFigures holds one figure for every layer and every group of parameters.
type LayerFigures struct {
	Layers []Number          `json:"layers"` // of all parameters of each layer
	Groups map[string]Number `json:"groups"` // by role, as in optimizer.groups: matrix, embedding, head, …
}

// paramNorms holds a sum of squares for each parameter of the whole model, by number: of its gradient, or of another
// quantity of the same size. The global norm needs those of the gradient anyway, so they cost nothing; all ranks know
// them.
type paramNorms struct {
	squares []float64
	layers  []int // of each parameter, −1 outside of the layers
	roles   []nn.Role
	deep    int       // layers
	sums    []float64 // by layer
}

func newParamNorms(outline *model.Decoder) paramNorms {
	n := paramNorms{deep: outline.Config.Layers}
	for _, p := range outline.Params() {
		n.layers, n.roles = append(n.layers, model.LayerOf(p)), append(n.roles, p.Role)
	}
	n.squares, n.sums = make([]float64, len(n.roles)), make([]float64, n.deep)
	return n
}

// begin forgets the sums of the step before and returns the place of the next ones.
func (n *paramNorms) begin() []float64 {
	clear(n.squares)
	return n.squares
}

// byLayer writes the norm of each layer's gradient, times scale, to out, which has room for all layers.
func (n *paramNorms) byLayer(out []float64, scale float64) {
	n.sum()
	for l, sum := range n.sums {
		out[l] = scale * math.Sqrt(sum)
	}
}

// observeNorms adds the gradient norms of an accepted step to its event, if they are due, and reports a layer whose
// norm has risen.
func (t *Trainer) observeNorms(e *Event, targets float64) {
	scale := 1 / (targets * t.tape.LossScale)
	t.norms.byLayer(t.rises.norms, scale)
	e.Rise = t.rises.observe()
	if every := t.cfg.Train.NormsEvery; every > 0 && t.progress.Step%every == 0 {
		e.GradNorms = t.norms.report(scale)
		if t.ratios.due = t.measuresRatios(); t.ratios.due {
			t.ratios.moved.begin()
			t.ratios.weight.begin()
		}
	}
}

// report returns the norms, times scale.
func (n *paramNorms) report(scale float64) LayerFigures {
	return n.figures(func(squares, _ float64) float64 { return scale * math.Sqrt(squares) }, n)
}

// figures returns f of the sums of squares of n and other, for each layer and group.
func (n *paramNorms) figures(f func(squares, other float64) float64, other *paramNorms) LayerFigures {
	groups, others := n.sum(), other.sum()
	list := LayerFigures{Layers: make([]Number, n.deep), Groups: map[string]Number{}}
	for l := range list.Layers {
		list.Layers[l] = Number(f(n.sums[l], other.sums[l]))
	}
	for _, role := range n.roles {
		list.Groups[role.String()] = Number(f(groups[role], others[role]))
	}
	return list
}

// sum adds up the sums of squares by layer, in n.sums, and by group.
func (n *paramNorms) sum() (groups [nn.Roles]float64) {
	clear(n.sums)
	for i, sum := range n.squares {
		if groups[n.roles[i]] += sum; n.layers[i] >= 0 {
			n.sums[n.layers[i]] += sum
		}
	}
	return groups
}

// squaredNorm returns the sum of squares of the current gradients, without the loss scale of fp16. If the optimizer
// works part by part, so does the sum, and ranks that own parts get the same bits.
func (t *Trainer) squaredNorm() float64 {
	t.normed = t.normed[:0]
	for i, p := range t.model.Params() {
		switch {
		case !p.HasGrad() || p.Frozen:
		case t.parts[i] == nil:
			t.normed = append(t.normed, &p.Grad)
		default:
			for k := range t.parts[i] {
				t.normed = append(t.normed, &t.parts[i][k])
			}
		}
	}
	sums, squares, total := t.squares.Each(t.dev, t.normed...), t.norms.begin(), 0.0
	for i, p := range t.model.Params() {
		if !p.HasGrad() || p.Frozen {
			continue
		}
		for range max(len(t.parts[i]), 1) {
			squares[p.Number] += sums[0]
			total, sums = total+sums[0], sums[1:]
		}
	}
	return total / (t.tape.LossScale * t.tape.LossScale)
}

// gradientParts returns the gradients of the parts of p, if the optimizer works part by part.
func gradientParts(o optim.Optimizer, p *nn.Param) (parts []tensor.Tensor) {
	if p.Gradless() || optim.Divide(o, p) != optim.Parts || len(p.Parts) == 0 || p.Cut != autograd.Whole {
		return nil // the owners sum the parts of a cut parameter
	}
	from := 0
	for _, part := range p.Parts {
		parts = append(parts, p.Grad.Slice(from, from+part.Rows))
		from += part.Rows
	}
	return parts
}
