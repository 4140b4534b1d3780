package bench

import "testing"

// For published clusters the search finds a mesh that is predicted at least as fast as the published one, where that
// one is predicted to fit, as nearly all do. Every eighth complete run is tried; `anneal bench plan --published
// --search` tries them all.
func TestTheSearchFindsAsGoodMeshesAsThePublished(t *testing.T) {
	list, err := PublishedRuns()
	if err != nil {
		t.Fatal(err)
	}
	complete, tried, fit := 0, 0, 0
	for _, p := range list {
		if !p.Complete() {
			continue
		}
		if complete++; complete%8 != 0 {
			continue
		}
		s, err := p.Search()
		if err != nil {
			t.Fatalf("%s: %v", p.ID, err)
		}
		tried++
		if s.Fits {
			fit++
		}
		if s.Slower() {
			t.Errorf("%s, %s on %s: %s takes %.4f s, the best found, %s, %.4f s", s.ID, s.Model, s.Cluster, s.Published,
				s.Seconds, s.Best, s.Found)
		}
	}
	if tried < 30 || fit < tried*19/20 {
		t.Errorf("%d runs were tried, %d of them are predicted to fit", tried, fit)
	}
}
