package synth

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A Canaries text is a background of random words with secrets in it, each some number of times (Carlini et al. 2019,
// arXiv 1802.08232): "q3Zk=83719204". A model that writes the digits after the key has memorised them, as nothing else
// in the text determines them.
type Canaries struct {
	Background int   // documents of RandomWords
	Each       int   // secrets of each number of copies
	Copies     []int // how often each secret occurs
	References int   // secrets that are not in the text, to compare with
	Seed       uint64
}

// SecretDigits is how many digits a secret has.
const SecretDigits = 8

// Secrets returns the secrets of each number of copies, in the order of c.Copies, and then the reference secrets,
// which are not in the text.
func (c Canaries) Secrets() (list [][]string, references []string) {
	r := rand.New(rand.NewPCG(c.Seed, 2))
	all := draw(len(c.Copies)*c.Each+c.References, len(symbols)*len(symbols)*len(symbols)*len(symbols), c.Seed)
	secret := func(key int) string {
		var name strings.Builder
		for range 4 {
			name.WriteByte(symbols[key%len(symbols)])
			key /= len(symbols)
		}
		return fmt.Sprintf("%s=%0*d", name.String(), SecretDigits, r.IntN(1e8))
	}
	for i := range c.Copies {
		var group []string
		for n := range c.Each {
			group = append(group, secret(all[i*c.Each+n]))
		}
		list = append(list, group)
	}
	for _, key := range all[len(c.Copies)*c.Each:] {
		references = append(references, secret(key))
	}
	return list, references
}

// Text makes the text, in random order.
func (c Canaries) Text() (Text, error) {
	if c.Background < 1 || c.Each < 1 || len(c.Copies) == 0 || c.References < 0 {
		return Text{}, fmt.Errorf("%d background documents with %d secrets of each of %d numbers of copies: want at "+
			"least one of each", c.Background, c.Each, len(c.Copies))
	}
	t := Text{Train: RandomWords(c.Background, c.Seed), PromptEnd: "="}
	secrets, _ := c.Secrets()
	for i, group := range secrets {
		if c.Copies[i] < 1 {
			return Text{}, fmt.Errorf("%d copies of a secret: want at least 1", c.Copies[i])
		}
		for _, s := range group {
			for range c.Copies[i] {
				t.Train = append(t.Train, s)
			}
		}
	}
	shuffle(t.Train, c.Seed)
	return t, nil
}

// WordCount is the number of different words.
const WordCount = 500

// Word returns the word of a rank, from 0: two letters. The word of rank r has a probability proportional to (r +
// 1)^−1.1.
func Word(rank int) string { return string([]byte{symbols[rank%26+36], symbols[rank/26%26+36]}) }

// RandomWords returns n documents of twelve words, drawn by Zipf's law.
func RandomWords(n int, seed uint64) (documents []string) {
	ranks := rand.NewZipf(rand.New(rand.NewPCG(seed, 3)), 1.1, 1, WordCount-1)
	for range n {
		words := make([]string, 12)
		for i := range words {
			words[i] = Word(int(ranks.Uint64()))
		}
		documents = append(documents, strings.Join(words, " "))
	}
	return documents
}
