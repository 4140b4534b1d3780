package plan

// RanksOf returns how many ranks a number of threads should form for steps with a number of sequences: the largest
// number that divides both, so that all ranks have the same work. Ranks of a small model wait for each other once per
// step; threads that share every operation wait once per operation (docs/budget.md).
func RanksOf(threads, sequences int) int {
	ranks := 1
	for n := 2; n <= threads; n++ {
		if threads%n == 0 && sequences%n == 0 {
			ranks = n
		}
	}
	return ranks
}

// MicroOf returns the number of sequences in a rank's micro-batch of at most 4,096 tokens, at least 1. sequences is the
// number in a step, which MicroOf's result divides. Fewer than one rank or a context below 1 count as 1.
func MicroOf(ranks, sequences, context int) int {
	micro := max(min(sequences/max(ranks, 1), budgetMicro/max(context, 1)), 1)
	for sequences%micro != 0 {
		micro--
	}
	return micro
}
