package model

// Generation that guesses: prompt lookup decoding (Saxena 2023), a speculative decoding (Leviathan et al. 2022, arXiv
// 2211.17192) without a second model. A text often repeats itself, and code more than prose. What followed the last
// tokens where they stood before is guessed to follow again, and one pass checks all guesses: it reads the weights
// once, which is what a pass of few tokens waits for. The tokens are those that would be made one by one, also at a
// temperature, since a logit is a function of its text alone, and a draw of logits, text and seed.

const (
	maxGuesses  = 7 // tokens that are guessed at a time; a pass of 8 rows is what kernels of few rows are made for
	firstGuess  = 3 // at first
	longestTail = 4 // tokens that are compared
	leastTail   = 2
)

// A Guesser guesses tokens of one text: the more, the more of its last guesses were right. The zero value is ready.
type Guesser struct{ reach int }

// Append appends to ids up to most tokens that may follow: those after the last place at which the last two to four of
// ids stood before, of the places with the longest match.
func (g *Guesser) Append(ids []int32, most int) []int32 {
	if g.reach == 0 {
		g.reach = firstGuess
	}
	at := follow(ids)
	if at == 0 {
		return ids
	}
	for range min(most, g.reach) { // a text that repeats itself to the end goes on repeating what is guessed
		ids = append(ids, ids[at])
		at++
	}
	return ids
}

// Right tells the Guesser how many of its last guesses were right.
func (g *Guesser) Right(n int) { g.reach = min(2*n+1, maxGuesses) }

// follow returns the position after the last place at which the end of ids stood before, 0 if it never did.
func follow(ids []int32) (at int) {
	longest := leastTail - 1
	for i := len(ids) - 1; i > longest && longest < longestTail; i-- {
		n := 0
		for n < min(longestTail, i) && ids[i-1-n] == ids[len(ids)-1-n] {
			n++
		}
		if n > longest {
			longest, at = n, i
		}
	}
	return at
}
