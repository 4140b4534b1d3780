package program

// GPipe runs all micro-batches forward, then all backward (Huang et al. 2018, arXiv 1811.06965).
//
//	stage 0   F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3
//	stage 1   .  F0 F1 F2 F3 .  .  B0 B1 B2 B3
//
// Idle share: (p−1)/(m+p−1), p stages and m micro-batches. Memory: every stage keeps the activations of all m. The
// gradients are added in the order of the micro-batches, as a single rank adds them. Use it to compare;
// OneForwardOneBackward is as fast and keeps less.
func GPipe(stages, micro int) [][]Instr {
	lists := make([][]Instr, stages)
	for s := range lists {
		for _, op := range []Op{Forward, Backward} {
			for i := range micro {
				lists[s] = append(lists[s], Instr{Op: op, Micro: i})
			}
		}
	}
	return connect(lists, 1)
}
