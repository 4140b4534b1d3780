package program

import "testing"

// If a stage waits only for what it needs next, an interleaved pipeline idles as its formula says, however long a
// backward takes beside a forward (Narayanan et al. 2021, arXiv 2104.04473 §2.2).
func TestAPipelineWithLateReceivesIdlesAsItsFormula(t *testing.T) {
	const stages, micro = 8, 64
	for _, chunks := range []int{1, 2, 4} {
		for _, backward := range []float64{1, 1.6, 2, 3} {
			lists, err := Schedule{"interleaved", chunks}.Make(stages, micro)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Simulate(Late(lists), Even(stages, chunks, 1, backward/2, backward/2))
			if err != nil {
				t.Fatal(err)
			}
			want := float64(stages-1) / float64(chunks*micro+stages-1)
			if idle := got.IdleShare(); idle > want+1e-9 || idle < want-1e-9 {
				t.Errorf("%d chunks, backward %v times forward: idle %.4f, want %.4f", chunks, backward, idle, want)
			}
		}
	}
}
