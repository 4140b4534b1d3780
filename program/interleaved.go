package program

import "fmt"

// Interleaved is 1F1B with several chunks of the model on each stage, so that the pipeline fills in smaller steps
// (Narayanan et al. 2021, arXiv 2104.04473 §2.2). Micro-batches go through the chunks in groups of as many as there
// are stages: a group is in chunk 0, then in chunk 1 …
//
// Idle share: (p−1)/(v·m+p−1) with v chunks. Messages: v times those of 1F1B. Memory: 1 + (p−1)/(p·v) times that of
// 1F1B on the first stage. It needs micro to be a multiple of stages.
func Interleaved(stages, chunks, micro int) ([][]Instr, error) {
	if stages < 1 || chunks < 1 || micro < 1 {
		return nil, fmt.Errorf("a pipeline of %d stages with %d chunks each and %d micro-batches: "+
			"all must be at least 1", stages, chunks, micro)
	}
	if micro%stages != 0 {
		return nil, fmt.Errorf("the interleaved schedule needs a number of micro-batches that is a multiple of its "+
			"stages; %d micro-batches are not a multiple of %d stages", micro, stages)
	}
	// The k-th computation of a stage in one direction.
	at := func(k int) (micro, chunk int) {
		group, in := k/(stages*chunks), k%(stages*chunks)
		return group*stages + in%stages, in / stages
	}
	forward := func(k int) Instr {
		i, c := at(k)
		return Instr{Op: Forward, Micro: i, Chunk: c}
	}
	backward := func(k int) []Instr {
		i, c := at(k)
		return []Instr{{Op: Backward, Micro: i, Chunk: chunks - 1 - c}}
	}
	lists := make([][]Instr, stages)
	for s := range lists {
		warm := 2*(stages-s-1) + (chunks-1)*stages
		if chunks == 1 {
			warm = stages - s - 1
		}
		lists[s] = alternate(micro*chunks, warm, forward, backward)
	}
	return connect(lists, chunks), nil
}
