package program

// OneForwardOneBackward starts the backward of a micro-batch as soon as it can, and then alternates (1F1B:
// Narayanan et al. 2019, PipeDream; with a flush at the end of the step as in Megatron-LM, arXiv 2104.04473).
//
//	stage 0   F0 F1 .  .  B0 F2 B1 F3 B2 .  B3
//	stage 1   .  F0 B0 F1 B1 F2 B2 F3 B3
//
// Idle share: (p−1)/(m+p−1), as GPipe. Memory: stage s keeps the activations of at most p−s micro-batches.
func OneForwardOneBackward(stages, micro int) [][]Instr {
	lists := make([][]Instr, stages)
	for s := range lists {
		forward := func(k int) Instr { return Instr{Op: Forward, Micro: k} }
		backward := func(k int) []Instr { return []Instr{{Op: Backward, Micro: k}} }
		lists[s] = alternate(micro, stages-s-1, forward, backward)
	}
	return connect(lists, 1)
}

// alternate runs the first warm forwards, then one forward and one backward in turn, then the remaining backwards.
func alternate(n, warm int, forward func(k int) Instr, backward func(k int) []Instr) (list []Instr) {
	warm = min(warm, n)
	for k := range n + warm {
		if k < n {
			list = append(list, forward(k))
		}
		if k >= warm {
			list = append(list, backward(k-warm)...)
		}
	}
	return list
}
