package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"
)

func TestStreamDecoderEmitsWholeCharacters(t *testing.T) {
	tok := sample()
	e := tok.NewEncoder()
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		d := tok.NewStreamDecoder()
		var got strings.Builder
		for _, id := range e.Encode(nil, text) {
			part := d.Next(id)
			for i, r := range part {
				if r == '\uFFFD' && !strings.HasPrefix(part[i:], "\uFFFD") {
					t.Fatalf("part %q of a character of %q", part, text)
				}
			}
			got.WriteString(part)
		}
		got.WriteString(d.Flush())
		want, err := unicode.UTF8.NewDecoder().Bytes(text)
		if err != nil || got.String() != string(want) {
			t.Fatalf("text %q streamed as %q, want %q (%v)", text, got.String(), want, err)
		}
	})
}

// What Python and Rust make of bytes that are not UTF-8.
func TestStreamDecoderMarksBrokenCharacters(t *testing.T) {
	tok := sample()
	for text, want := range map[string]string{
		"\xe4\xb8a": "\uFFFDa", "\xf0\x9f\x98a": "\uFFFDa", "\xf0\x9f\x98": "\uFFFD", "\xe4a\xff": "\uFFFDa\uFFFD",
		"\xe4\xb8\xe4\xb8\xad": "\uFFFD中", "\xb8\xb8": "\uFFFD\uFFFD", "\xff\xff": "\uFFFD\uFFFD",
		"\xe0\x80a": "\uFFFD\uFFFDa", "\xed\xa0\x80": "\uFFFD\uFFFD\uFFFD", "\xf4\x90\x80": "\uFFFD\uFFFD\uFFFD",
	} {
		d, got := tok.NewStreamDecoder(), ""
		for _, id := range tok.NewEncoder().Encode(nil, []byte(text)) {
			got += d.Next(id)
		}
		if got += d.Flush(); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestDecodeMarksUnknownIDs(t *testing.T) {
	tok := sample()
	a, _ := tok.ID("a")
	if got := string(tok.Decode([]byte("<"), []uint32{a, math.MaxUint32, a, uint32(tok.VocabSize())})); got !=
		"<a\uFFFDa\uFFFD" {
		t.Errorf("got %q", got)
	}
}

func TestSpecialTokensOnlyWhereAllowed(t *testing.T) {
	tok := mustTrain(t, TrainOptions{VocabSize: 300, Special: []string{"<|endoftext|>", "<|end", "<|x|>"}},
		"a b <|endoftext|> <|x|>")
	eot, err := tok.EndOfText()
	if err != nil || string(tok.Token(eot)) != "<|endoftext|>" {
		t.Fatalf("end of text is %d (%v), token %q", eot, err, tok.Token(eot))
	}
	end, _ := tok.ID("<|end")
	x, _ := tok.ID("<|x|>")
	text := []byte("a<|endoftext|><|endof<|x|><|x")
	ids := tok.EncodeSpecial(text)
	var special []uint32
	for _, id := range ids {
		if id >= min(eot, end, x) {
			special = append(special, id)
		}
	}
	if want := []uint32{eot, end, x}; !slices.Equal(special, want) {
		t.Errorf("special tokens %d in %d, want %d: the longest at each place", special, ids, want)
	}
	for _, id := range tok.NewEncoder().Encode(nil, text) {
		if id >= min(eot, end, x) {
			t.Errorf("ordinary encoding yields the special token %q", tok.Token(id))
		}
	}
	if got := string(tok.Decode(nil, ids)); got != string(text) {
		t.Errorf("decoded to %q", got)
	}
}

func TestEvaluate(t *testing.T) {
	bytewise := mustTrain(t, TrainOptions{VocabSize: 257}, "")
	const text = "the cat\tsat \u00a0on it\n"
	got, err := Evaluate(bytewise, each(text, ""))
	if err != nil {
		t.Fatal(err)
	}
	n := float64(len(text))
	if want := (Stats{
		Documents: 2, Bytes: int64(n), Characters: int64(n) - 1, Tokens: int64(n), Words: 5,
		BytesPerToken: 1, CharactersPerToken: (n - 1) / n, Fertility: n / 5, ContinuedWords: 1, SingleByteTokens: 1,
		Coverage: 14.0 / 256,
	}); got != want {
		t.Errorf("bytes as tokens: %+v, want %+v", got, want)
	}
	// A vocabulary with each word, blank included, gives one token a word.
	whole := mustTrain(t, TrainOptions{VocabSize: 400}, strings.Repeat("the cat sat on it ", 20))
	got, err = Evaluate(whole, each("the cat sat on it"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Fertility != 1 || got.ContinuedWords != 0 || got.BytesPerToken != 17.0/5 {
		t.Errorf("words as tokens: %+v, want fertility 1, no continued words, 3.4 bytes per token", got)
	}
	// "catnip," is cut, "the" and "sat" are not.
	if got, _ = Evaluate(whole, each("the catnip, sat")); math.Abs(got.ContinuedWords-1.0/3) > 1e-15 {
		t.Errorf("continued words %v, want 1/3", got.ContinuedWords)
	}
	broken := errors.New("no more")
	if _, err := Evaluate(whole, func(yield func([]byte, error) bool) { yield(nil, broken) }); !errors.Is(err, broken) {
		t.Errorf("error of the documents: got %v", err)
	}
}

// Groups add up to the total, and their ratios are those of their text alone.
func TestEvaluatorMeasuresGroups(t *testing.T) {
	tok := sample()
	docs := map[string][]string{
		"en": {"The word isn't it; they'll say", "return nil"}, "ru": {"Жук и жук", "\xff\xfe"}, "none": {""},
	}
	e := tok.NewEvaluator()
	var sum Stats
	for name, texts := range docs {
		for _, text := range texts {
			e.Add(name, []byte(text))
		}
	}
	best := 0.0
	for _, g := range e.Groups() {
		alone, err := Evaluate(tok, each(docs[g.Name]...))
		if err != nil {
			t.Fatal(err)
		}
		if alone != g.Stats {
			t.Errorf("%s: %+v, alone %+v", g.Name, g.Stats, alone)
		}
		sum.Documents += g.Documents
		sum.Bytes += g.Bytes
		sum.Tokens += g.Tokens
		sum.Characters += g.Characters
		sum.Words += g.Words
		best = max(best, g.BytesPerToken)
	}
	total := e.Total()
	if total.Documents != sum.Documents || total.Bytes != sum.Bytes || total.Tokens != sum.Tokens ||
		total.Characters != sum.Characters || total.Words != sum.Words {
		t.Errorf("total %+v, sum of the groups %+v", total, sum)
	}
	for _, g := range e.Groups() {
		if g.Tokens > 0 && math.Abs(g.Parity*g.BytesPerToken-best) > 1e-12 {
			t.Errorf("%s: parity %v with %v bytes/token; the best have %v", g.Name, g.Parity, g.BytesPerToken, best)
		}
	}
	// All bytes: every token is one byte, and of 700 ordinary tokens they are what occurs.
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(255 - i)
	}
	bytewise := mustTrain(t, TrainOptions{VocabSize: 257})
	if s, err := Evaluate(bytewise, each(string(all))); err != nil || s.Coverage != 1 || s.SingleByteTokens != 1 {
		t.Errorf("every byte once: %+v (%v), want coverage 1 and single bytes 1", s, err)
	}
	for i := range 3 * MaxGroups {
		e.Add(fmt.Sprint(i), []byte("x"))
	}
	if n := len(e.Groups()); n != MaxGroups+1 {
		t.Errorf("%d groups, want %d and one for the others", n, MaxGroups)
	}
}

func TestScript(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "12 + 3 = 15!": "", "hello": "Latin", "Жук x": "Cyrillic", "日本": "Han", "ひらがな日": "Hiragana",
		"한국어 ab": "Hangul", "αβ": "Greek", "עברית": "Hebrew", "a б": "Cyrillic", "\xff\xfe": "",
	} {
		if got := Script([]byte(text)); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
