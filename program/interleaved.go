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
		lists[s] = alternate(micro*chunks, warmups(stages, chunks, s), forward, backward)
	}
	return connect(lists, chunks), nil
}

// warmups returns how many forward passes a stage runs before its first backward pass, if there are as many.
func warmups(stages, chunks, stage int) int {
	if chunks == 1 {
		return stages - stage - 1
	}
	return 2*(stages-stage-1) + (chunks-1)*stages
}

// InterleavedPeak returns the most micro-batches, counted in each chunk, whose activations a stage keeps at one time
// in the interleaved schedule of any number of micro-batches (Schedule.Fit). It does not make the lists.
func InterleavedPeak(stages, chunks, micro, stage int) int {
	groups := (micro + stages - 1) / stages
	n, round, last := groups*stages*chunks, stages*chunks, micro-(groups-1)*stages
	before := (groups - 1) * round // the passes of all groups but the last, of which none is missing
	first := func(k int) int {     // how many of the first k passes in a direction exist
		if k <= before {
			return k
		}
		k -= before
		return before + k/stages*last + min(k%stages, last)
	}
	warm := min(warmups(stages, chunks, stage), n)
	peak := min(before, warm+1)
	for k := max(before, 1); k <= n && peak <= warm; k++ {
		peak = max(peak, first(k)-first(max(0, k-1-warm)))
	}
	return peak
}
