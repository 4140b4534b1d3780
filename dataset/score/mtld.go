package score

import (
	"bytes"
	"math"
)

// mtldThreshold is the type-token ratio that ends a stretch.
const mtldThreshold = 0.72

// MTLD is the measure of textual lexical diversity (McCarthy and Jarvis 2010, doi 10.3758/BRM.42.2.381): the mean
// number of words in a stretch of the text until the share of different words among them falls to 0.72. Low is easy:
// few words, often repeated. Prose has 50 to 120.
//
// A factor is a stretch whose ratio has fallen to the threshold; the rest at the end counts as (1 − ratio) / (1 −
// 0.72) of a factor, and the measure is words / factors. It is the mean of a forward and a backward pass. A text
// without repeated words counts as one factor. Words are compared in lower case. NaN without a word; unreliable below
// about 50 words. Memory: 12 bytes per word. Hardly useful for source code, whose names are not words.
func MTLD(text []byte) float64 {
	ids := map[string]int32{} // in the order of appearance
	var list []int32
	var word []byte
	words(text, func(from, to int) {
		word = bytes.ToLower(text[from:to])
		id, seen := ids[string(word)]
		if !seen {
			id = int32(len(ids))
			ids[string(word)] = id
		}
		list = append(list, id)
	})
	if len(list) == 0 {
		return math.NaN()
	}
	stretch := make([]int32, len(ids)) // for each word: the stretch of its last occurrence
	forwards := factors(list, stretch, 1, func(i int) int { return i })
	backwards := factors(list, stretch, int32(len(list))+2, func(i int) int { return len(list) - 1 - i })
	n := float64(len(list))
	return (n/forwards + n/backwards) / 2
}

// factors counts factors among words in the order at. Stretches are numbered from first on.
func factors(list, stretch []int32, first int32, at func(int) int) float64 {
	count, types, tokens := 0.0, 0, 0
	for i := range list {
		w := list[at(i)]
		if stretch[w] != first {
			stretch[w] = first
			types++
		}
		tokens++
		if float64(types)/float64(tokens) <= mtldThreshold {
			count++
			first++
			types, tokens = 0, 0
		}
	}
	if tokens > 0 {
		count += (1 - float64(types)/float64(tokens)) / (1 - mtldThreshold)
	}
	if count == 0 {
		return 1
	}
	return count
}
