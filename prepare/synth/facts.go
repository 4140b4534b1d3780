package synth

import (
	"fmt"
	"math/rand/v2"
)

// A Facts text is facts without a pattern, to measure how much a model can hold: "3K=190442" gives the six random
// digits of the key 3K. There is nothing to hold out.
type Facts struct {
	Facts int // 1 to 3,844
	Seed  uint64
}

// FactDigits is how many random digits a fact has.
const FactDigits = 6

// Text makes the text.
func (f Facts) Text() (Text, error) {
	most := len(symbols) * len(symbols)
	if f.Facts < 1 || f.Facts > most {
		return Text{}, fmt.Errorf("%d facts are not between 1 and %d, the keys of two bytes", f.Facts, most)
	}
	r := rand.New(rand.NewPCG(f.Seed, 1))
	t := Text{PromptEnd: "="}
	for _, key := range draw(f.Facts, most, f.Seed) {
		t.Train = append(t.Train, fmt.Sprintf("%c%c=%0*d", symbols[key/len(symbols)], symbols[key%len(symbols)],
			FactDigits, r.IntN(1e6)))
	}
	return t, nil
}
