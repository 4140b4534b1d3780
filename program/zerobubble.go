package program

// ZeroBubble is 1F1B with backward split in two: first the gradient of a part's input, which the stage before waits
// for, and later, when the stage would be idle, the gradients of its weights (ZB-H1: Qi et al. 2023, arXiv
// 2401.10241). Stage s defers the weights by s micro-batches.
//
// With F, B and W the times of the three, the idle time of a stage is (p−1)·(F+B−W) instead of (p−1)·(F+B+W): a third
// where they are equal. Memory: p micro-batches on every stage, as much as on the first stage of 1F1B. The gradients
// of the weights are added in the order of the micro-batches, so the bits are those of 1F1B.
func ZeroBubble(stages, micro int) [][]Instr {
	lists := make([][]Instr, stages)
	for s := range lists {
		forward := func(k int) Instr { return Instr{Op: Forward, Micro: k} }
		backward := func(k int) []Instr {
			list := []Instr{{Op: BackwardInput, Micro: k}}
			if k >= s {
				list = append(list, Instr{Op: BackwardWeights, Micro: k - s})
			}
			return list
		}
		lists[s] = alternate(micro, stages-s-1, forward, backward)
		for k := max(0, micro-s); k < micro; k++ {
			lists[s] = append(lists[s], Instr{Op: BackwardWeights, Micro: k})
		}
	}
	return connect(lists, 1)
}
