package plan

// RanksOf returns how many ranks so many threads should be for steps of so many sequences: the most that divide both,
// so that all have the same work. Ranks of a small model wait for each other once a step; threads that share every
// operation wait once an operation (docs/budget.md).
func RanksOf(threads, sequences int) int {
	ranks := 1
	for n := 2; n <= threads; n++ {
		if threads%n == 0 && sequences%n == 0 {
			ranks = n
		}
	}
	return ranks
}

// MicroOf returns the sequences of a rank's micro-batch, of at most 4,096 tokens, in steps of so many sequences, which
// it divides.
func MicroOf(ranks, sequences, context int) int {
	micro := max(min(sequences/ranks, budgetMicro/max(context, 1)), 1)
	for sequences%micro != 0 {
		micro--
	}
	return micro
}
