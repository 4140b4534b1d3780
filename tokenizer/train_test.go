package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// each yields the documents; the buffer of one is overwritten before the next, as a reader that streams would.
func each(docs ...string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var buf []byte
		for _, d := range docs {
			buf = append(buf[:0], d...)
			if !yield(buf, nil) {
				return
			}
			for i := range buf {
				buf[i] = '!'
			}
		}
	}
}

func mustTrain(t rapid.TB, opt TrainOptions, docs ...string) *Tokenizer {
	t.Helper()
	tok, err := Train(context.Background(), opt, each(docs...))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// naiveTrain is the definition: count all pairs afresh before each merge. Tokens are in the byte-level alphabet.
func naiveTrain(p pattern, merges int, docs []string) []string {
	counts := map[string]int{}
	for _, d := range docs {
		for _, piece := range split(p.new(), []byte(d)) {
			counts[piece]++
		}
	}
	ids := map[string]int{} // by token
	for i, b := range byteOrder {
		ids[string([]byte{b})] = i
	}
	words := map[string][]string{}
	for piece := range counts {
		for i := range len(piece) {
			words[piece] = append(words[piece], piece[i:i+1])
		}
	}
	var made []string
	for len(made) < merges {
		pairs := map[[2]string]int{}
		for piece, w := range words {
			for i := range len(w) - 1 {
				pairs[[2]string{w[i], w[i+1]}] += counts[piece]
			}
		}
		var best [2]string
		for p, n := range pairs {
			m := pairs[best]
			if n > m || n == m && (ids[p[0]] < ids[best[0]] || ids[p[0]] == ids[best[0]] && ids[p[1]] < ids[best[1]]) {
				best = p
			}
		}
		if pairs[best] == 0 {
			break
		}
		token := best[0] + best[1]
		if _, ok := ids[token]; !ok {
			ids[token] = len(ids)
		}
		made = append(made, fmt.Sprintf("%q + %q", best[0], best[1]))
		for piece, w := range words {
			words[piece] = naiveMerge(w, best[0], best[1])
		}
	}
	return made
}

// naiveMerge replaces left, right in word, from the left.
func naiveMerge(word []string, left, right string) []string {
	var out []string
	for i := 0; i < len(word); i++ {
		if i+1 < len(word) && word[i] == left && word[i+1] == right {
			out = append(out, left+right)
			i++
		} else {
			out = append(out, word[i])
		}
	}
	return out
}

func mergeNames(t *Tokenizer) []string {
	var out []string
	for _, m := range t.merges {
		out = append(out, fmt.Sprintf("%q + %q", t.Token(m.left), t.Token(m.right)))
	}
	return out
}

// few letters make many ties, runs and overlaps.
func drawFewLetters(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "aa", "ab", "ba", "c", " ", "\n", "é",
		"aaaaaaa", "abababab"}), 0, 60).Draw(t, "text"), "")
}

func TestTrainMatchesTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docs := []string{drawFewLetters(t), drawFewLetters(t), string(drawText(t))}
		want := naiveTrain(patterns[llama3], 30, docs)
		tok := mustTrain(t, TrainOptions{VocabSize: 256 + 1 + 30, Threads: rapid.IntRange(1, 3).Draw(t, "threads")},
			docs...)
		// Merges that reach a token a second way do not count towards the vocabulary, so there may be more of them.
		got := mergeNames(tok)
		if d := cmp.Diff(want, got[:min(len(got), len(want))]); d != "" {
			t.Fatalf("merges of %q (- definition, + Train):\n%s", docs, d)
		}
	})
}

func TestTrainDoesNotDependOnThreadsOrOrder(t *testing.T) {
	docs := make([]string, 200)
	for i := range docs {
		docs[i] = strings.Repeat(fmt.Sprintf("func f%d(x int) { return x+%d }\n\t// the %dth of them\n", i%17, i, i*i),
			40)
	}
	docs = append(docs, strings.Repeat(strings.Join(docs[:40], ""), 12)) // longer than a batch: cut at seams
	want := mustTrain(t, TrainOptions{VocabSize: 900, Threads: 1}, docs...)
	slices.Reverse(docs)
	for _, threads := range []int{2, 3, 8} {
		if got := mustTrain(t, TrainOptions{VocabSize: 900, Threads: threads}, docs...); got.Hash() != want.Hash() {
			t.Errorf("%d threads: hash %s, with one thread %s", threads, got.Hash(), want.Hash())
		}
	}
}

// Where a long text is cut for the workers, no pretoken changes.
func TestSeamsDoNotChangePretokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := append(append(drawText(t), "x\n"...), drawText(t)...)
		for _, p := range patterns {
			whole := split(p.new(), text)
			for at := seam(text, 1); at < len(text); at = seam(text, at+1) {
				parts := append(split(p.new(), text[:at]), split(p.new(), text[at:])...)
				if d := cmp.Diff(whole, parts); d != "" {
					t.Fatalf("%s: text %q cut at %d (- whole, + parts):\n%s", p.name, text, at, d)
				}
			}
		}
	})
}

// "aaabdaaabac": (a,a) first; then (aa,a) and (a,b) tie at 2 and the smaller ids win, a before aa; five symbols in the
// end.
func TestTiesGoToTheSmallerIDs(t *testing.T) {
	tok := mustTrain(t, TrainOptions{VocabSize: 256 + 3, Special: []string{}}, "aaabdaaabac")
	want := []string{`"a" + "a"`, `"a" + "b"`, `"aa" + "ab"`}
	if d := cmp.Diff(want, mergeNames(tok)); d != "" {
		t.Errorf("merges (- want, + got):\n%s", d)
	}
	if ids := tok.NewEncoder().Encode(nil, []byte("aaabdaaabac")); len(ids) != 5 {
		t.Errorf("%d tokens %v, want 5", len(ids), ids)
	}
}

// Counts beyond 2^31 are summed without loss.
func TestCountsAre64Bit(t *testing.T) {
	c := newWordCounts()
	c.addWord(packWord([]byte("ab"), 0, 2), 1<<32+1)
	c.addWord(packWord([]byte("cd"), 0, 2), 1<<32+2)
	c.addLong([]byte("longer than fifteen bytes"), 1<<20)
	l, err := newLearner(group{}, 1, nil, c.each)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.learn(context.Background(), 2, func(bool, func(*Progress)) {}); err != nil {
		t.Fatal(err)
	}
	if a, b := string(l.vocab.at(256)), string(l.vocab.at(257)); a != "cd" || b != "ab" {
		t.Errorf("first merges %q, %q; want cd (2^32+2), ab (2^32+1)", a, b)
	}
}

// What is cut from a large vocabulary is what training makes of a smaller one.
func TestCutIsTrainingForLess(t *testing.T) {
	docs := manyWords(3000)
	all := mustTrain(t, TrainOptions{VocabSize: 2000, Special: []string{"<a>", "<b>"}}, docs...)
	for _, size := range []int{258, 259, 300, 1111, 1999, 2000, 5000} {
		got, err := all.Cut(size)
		if err != nil {
			t.Fatal(err)
		}
		if want := mustTrain(t, TrainOptions{VocabSize: min(size, 2000), Special: []string{"<a>", "<b>"}},
			docs...); got.Hash() != want.Hash() {
			t.Errorf("cut to %d: hash %s, trained %s", size, got.Hash(), want.Hash())
		}
	}
	if _, err := all.Cut(257); err == nil {
		t.Error("cut to 257 with two special tokens: no error")
	}
	if _, err := mustLoad(t, "testdata/hf_gpt2.json").Cut(400); err == nil {
		t.Error("a tokenizer with its special token first was cut")
	}
	rapid.Check(t, func(t *rapid.T) { // merges that make a token in a second way
		docs := []string{drawFewLetters(t), drawFewLetters(t)}
		all := mustTrain(t, TrainOptions{VocabSize: 300}, docs...)
		size := rapid.IntRange(257, 300).Draw(t, "size")
		got, err := all.Cut(size)
		if err != nil {
			t.Fatal(err)
		}
		if want := mustTrain(t, TrainOptions{VocabSize: size}, docs...); got.Hash() != want.Hash() {
			t.Fatalf("%q cut to %d: %q, trained %q", docs, size, mergeNames(got), mergeNames(want))
		}
	})
}

// A text that spells the special token out does not make an ordinary token of the same text.
func TestTrainNeverMakesASpecialToken(t *testing.T) {
	tok := mustTrain(t, TrainOptions{VocabSize: 300, Special: []string{"end"}}, strings.Repeat("end bend end\n", 50))
	for id := range tok.VocabSize() {
		if s := string(tok.Token(uint32(id))); s == "end" && id != tok.VocabSize()-1 {
			t.Errorf("ordinary token %d is %q", id, s)
		}
	}
	if d := cmp.Diff([]Special{{ID: uint32(tok.VocabSize() - 1), Text: "end"}}, tok.Specials()); d != "" {
		t.Error(d)
	}
}

// A pretoken without end is trained on in pieces.
func TestLongPretokensCountInPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	word := make([]byte, 3*longestCounted+77)
	for i := range word {
		word[i] = "acgt"[rng.IntN(4)]
	}
	var parts []string
	for part := range slices.Chunk(word, longestCounted) {
		parts = append(parts, string(part))
	}
	whole := mustTrain(t, TrainOptions{VocabSize: 600}, string(word))
	if d := cmp.Diff(mergeNames(mustTrain(t, TrainOptions{VocabSize: 600}, parts...)), mergeNames(whole)); d != "" {
		t.Errorf("merges (- pieces, + whole):\n%s", d)
	}
}

func TestTrainStopsWhenThereAreNoPairsLeft(t *testing.T) {
	if n := mustTrain(t, TrainOptions{VocabSize: 1000}, "ab ab").VocabSize(); n != 256+2+1 {
		t.Errorf("vocabulary of %d, want 259: ab, Ġab and <|endoftext|>", n)
	}
	if n := mustTrain(t, TrainOptions{VocabSize: 1000}).VocabSize(); n != 257 {
		t.Errorf("vocabulary of %d from no text, want 257", n)
	}
}

func TestTrainReportsErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	failing := func(yield func([]byte, error) bool) {
		_ = yield([]byte("some text"), nil) && yield(nil, broken)
	}
	if _, err := Train(context.Background(), TrainOptions{VocabSize: 300}, failing); !errors.Is(err, broken) {
		t.Errorf("error of the documents: got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Train(ctx, TrainOptions{VocabSize: 300}, each("a b c")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	for _, opt := range []TrainOptions{
		{VocabSize: 256},
		{VocabSize: 1 << 30},
		{VocabSize: 300, Pattern: "(("},
		{VocabSize: 300, Special: []string{"<a>", "<a>"}},
		{VocabSize: 300, Special: []string{""}},
		{VocabSize: 300, Special: []string{"x"}},
	} {
		_, err := Train(context.Background(), opt, each("text"))
		if asked := new(OptionError); !errors.As(err, &asked) {
			t.Errorf("%+v: got %v, want an OptionError", opt, err)
		}
	}
}

func TestTrainReportsProgress(t *testing.T) {
	var last Progress
	opt := TrainOptions{VocabSize: 256 + 1 + 3, Progress: func(p Progress) { last = p }}
	mustTrain(t, opt, "low lower", "lowest")
	if want := (Progress{Phase: "merge", Documents: 2, Bytes: 15, Words: 3, Merges: 3, Total: 3}); last != want {
		t.Errorf("last report %+v, want %+v", last, want)
	}
}
