package attention

// deepening is a pattern whose keys depend on the depth of a layer. Its stages are one-layer patterns, from the first
// layers to the last; the layers are divided among the stages as evenly as possible.
type deepening interface{ stages() []Pattern }

// stages returns the stages of a pattern; a pattern that is the same in all layers is its own only stage.
func stages(p Pattern) []Pattern {
	if d, ok := p.(deepening); ok {
		return d.stages()
	}
	return []Pattern{p}
}

// stage returns the pattern of one of a model's layers. The last layer has the last stage, however few layers there
// are.
func stage(p Pattern, layer, layers int) Pattern {
	list := stages(p)
	return list[((layer+1)*len(list)-1)/layers]
}
