package train

import (
	"anneal/config"
	"anneal/model"
	"anneal/parallel"
)

// Layers returns the layers that a stage of the run's pipeline has, by chunk.
func Layers(cfg *config.Config, stage int) ([]model.Span, error) {
	_, _, stages := cfg.Parallel.Mesh()
	if stages == 1 {
		return []model.Span{{From: 0, To: cfg.Model.Layers}}, nil
	}
	x, err := part(cfg, cfg.Model, &parallel.Mesh{
		Sizes: parallel.Sizes{Pipeline: stages}, Place: parallel.Place{Stage: stage},
	})
	return x.Chunks, err
}
