package bench

import "anneal/plan/cluster"

// A PublishedSearch is the mesh of a published run beside the best one that a search finds for the same model, batch,
// software and cluster. Times are predicted, in seconds.
type PublishedSearch struct {
	ID        string       `json:"id"`
	Model     string       `json:"model"`
	Cluster   string       `json:"cluster"`
	Published cluster.Mesh `json:"published_mesh"`
	Seconds   float64      `json:"published_mesh_seconds"`
	Fits      bool         `json:"published_mesh_fits"` // by the predicted memory
	Best      cluster.Mesh `json:"best_mesh"`
	Found     float64      `json:"best_mesh_seconds"` // 0 if nothing fits
	Gain      float64      `json:"gain"`              // time of the published mesh over that of the best, less 1
}

// Slower reports whether the search missed a mesh: the published mesh fits and is faster than all that the search
// found.
func (p PublishedSearch) Slower() bool {
	return p.Fits && (p.Found == 0 || p.Found > p.Seconds*(1+1e-9))
}

// Search looks for the best mesh of a published run.
func (p *PublishedRun) Search() (PublishedSearch, error) {
	r := p.Run
	s := PublishedSearch{ID: p.ID, Model: p.Model, Cluster: r.Cluster.String(), Published: r.Mesh}
	step, err := r.Shortened()
	if err != nil {
		return s, err
	}
	fullest := 0.0
	for _, m := range r.Memory(step) {
		fullest = max(fullest, m.Total())
	}
	s.Seconds, s.Fits = step.Seconds, fullest <= cluster.Usable*r.Cluster.Accelerator.Memory
	found, err := cluster.Find(*r, nil)
	if err != nil || found.Best == nil {
		return s, err
	}
	s.Best, s.Found = found.Best.Mesh, found.Best.Step.Seconds
	s.Gain = s.Seconds/s.Found - 1
	return s, nil
}
