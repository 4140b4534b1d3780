package tokenizer

import "testing"

// A tokenizer is related to what it becomes by more merges or other special tokens, in both directions, and to no
// other.
func TestRelatedIsGrownOrCut(t *testing.T) {
	text := "the cat sat on the mat and the dog ate the fat rat under the other apple tree"
	train := func(o TrainOptions, text string) *Tokenizer { return mustTrain(t, o, text, text) }
	base := train(TrainOptions{VocabSize: 270}, text)
	for name, c := range map[string]struct {
		other   *Tokenizer
		related bool
	}{
		"itself": {train(TrainOptions{VocabSize: 270}, text), true},
		"grown":  {train(TrainOptions{VocabSize: 280}, text), true},
		"cut":    {train(TrainOptions{VocabSize: 260}, text), true},
		"other specials": {train(TrainOptions{VocabSize: 271, Special: []string{"<|new|>", "<|endoftext|>"}}, text),
			true},
		"other text":    {train(TrainOptions{VocabSize: 270}, "func main() { return 1 + 2 + 3 }"), false},
		"other pattern": {train(TrainOptions{VocabSize: 270, Pattern: "gpt2"}, text), false},
	} {
		if Related(base, c.other) != c.related || Related(c.other, base) != c.related {
			t.Errorf("%s: related %v and %v, want %v", name, Related(base, c.other), Related(c.other, base), c.related)
		}
	}
}
