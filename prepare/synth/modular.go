package synth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// symbols stand for numbers, one byte each.
const symbols = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Symbol returns the byte that stands for a number below 62.
func Symbol(n int) byte { return symbols[n] }

// A Modular text is all sums a + b mod P, the text of grokking (Power et al. 2022, arXiv 2201.02177): "3K=N" says that
// 3 + 20 = 23. Numbers are one byte each. A random part of the P² sums is for training, the others are held out.
type Modular struct {
	P        int     // 2 to 62
	Fraction float64 // share of the sums to train on
	Seed     uint64
}

// Text makes the text.
func (m Modular) Text() (Text, error) {
	if m.P < 2 || m.P > len(symbols) {
		return Text{}, fmt.Errorf("p = %d is not between 2 and %d, the numbers that one byte can stand for", m.P,
			len(symbols))
	}
	n := int(math.Round(m.Fraction * float64(m.P*m.P)))
	if n < 1 || n >= m.P*m.P {
		return Text{}, fmt.Errorf("a fraction of %v leaves no sum to train on, or none to hold out, of %d", m.Fraction,
			m.P*m.P)
	}
	var all []string
	for a := range m.P {
		for b := range m.P {
			all = append(all, string([]byte{symbols[a], symbols[b], '=', symbols[(a+b)%m.P]}))
		}
	}
	shuffle(all, m.Seed)
	return Text{Train: all[:n], Val: all[n:], PromptEnd: "="}, nil
}

// shuffle puts a list in an order that seed decides.
func shuffle[T any](list []T, seed uint64) {
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// draw returns n different numbers below limit, in random order.
func draw(n, limit int, seed uint64) []int {
	r := rand.New(rand.NewPCG(seed, 0))
	if n > limit/4 {
		return r.Perm(limit)[:n]
	}
	seen := make(map[int]bool, n)
	list := make([]int, 0, n)
	for len(list) < n {
		if x := r.IntN(limit); !seen[x] {
			seen[x] = true
			list = append(list, x)
		}
	}
	return slices.Clip(list)
}
