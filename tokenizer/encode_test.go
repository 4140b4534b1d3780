package tokenizer

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sample is a tokenizer trained on a little text with every kind of pretoken.
var sample = sync.OnceValue(func() *Tokenizer {
	return sampleWith("llama3")
})

func sampleWith(pattern string) *Tokenizer {
	var docs []string
	for i := range 300 {
		docs = append(docs, fmt.Sprintf("The %dth word isn't it; "+
			"they'll say \"%s\"!\n\n\tif x%d == nil {\n\t\treturn\n\t}  // été, Жук, 中文 %s\n",
			i, strings.Repeat("ha", i%9), i, strings.Repeat("-", i%40)))
	}
	tok, err := Train(context.Background(), TrainOptions{VocabSize: 700, Pattern: pattern}, each(docs...))
	if err != nil {
		panic(err)
	}
	return tok
}

// naiveEncode is the definition: in each pretoken, make the merge of lowest rank, the leftmost first, until none is
// left.
func naiveEncode(t *Tokenizer, text []byte) []uint32 {
	ranks := map[[2]uint32]int{}
	for r, m := range t.merges {
		ranks[[2]uint32{m.left, m.right}] = r
	}
	var out []uint32
	for _, piece := range split(t.pattern.new(), text) {
		var ids []uint32
		for _, b := range []byte(piece) {
			ids = append(ids, t.byteID[b])
		}
		for {
			at, low := -1, len(ranks)+len(t.merges)
			for i := range len(ids) - 1 {
				if r, ok := ranks[[2]uint32{ids[i], ids[i+1]}]; ok && r < low {
					at, low = i, r
				}
			}
			if at < 0 {
				break
			}
			ids = slices.Replace(ids, at, at+2, t.merges[low].id)
		}
		out = append(out, ids...)
	}
	return out
}

func TestEncodeMatchesTheDefinition(t *testing.T) {
	for _, pattern := range []string{"gpt2", "cl100k", "llama3", `\p{L}+|[^\p{L}]+`} {
		tok := sampleWith(pattern)
		e := tok.NewEncoder() // its caches fill from one text to the next
		rapid.Check(t, func(t *rapid.T) {
			text := drawText(t)
			if got, want := e.Encode(nil, text), naiveEncode(tok, text); !slices.Equal(got, want) {
				t.Fatalf("%s, text %q:\n got  %d\n want %d", pattern, text, got, want)
			}
		})
	}
}

// Merges in any order, as a file may hold them: a merge may make a pair of lower rank than its own.
func drawShuffledTokenizer(t *rapid.T) *Tokenizer {
	vocab := byteVocab()
	var merges []merge
	ids := []uint32{uint32(vocab.find([]byte("a"))), uint32(vocab.find([]byte("b"))), uint32(vocab.find([]byte("c")))}
	seen := map[uint64]bool{}
	for range rapid.IntRange(1, 25).Draw(t, "merges") {
		left, right := rapid.SampledFrom(ids).Draw(t, "left"), rapid.SampledFrom(ids).Draw(t, "right")
		if seen[pairKey(left, right)] {
			continue
		}
		seen[pairKey(left, right)] = true
		id := uint32(vocab.add(append(slices.Clone(vocab.at(int(left))), vocab.at(int(right))...)))
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		merges = append(merges, merge{left, right, id})
	}
	tok, err := assemble(patterns[gpt2], vocab, rapid.Permutation(merges).Draw(t, "order"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// Both ways to run merges, the one for short and the one for long pretokens, follow the definition.
func TestMergersMatchTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tok := drawShuffledTokenizer(t)
		m := merger{t: tok}
		for range 3 {
			piece := []byte(rapid.StringMatching(`[abc]{2,60}`).Draw(t, "piece"))
			want := naiveEncode(tok, piece)
			if got := m.appendShort(nil, piece); !slices.Equal(got, want) {
				t.Fatalf("short, merges %q, piece %q:\n got  %d\n want %d", mergeNames(tok), piece, got, want)
			}
			if got := m.appendLong(nil, piece); !slices.Equal(got, want) {
				t.Fatalf("long, merges %q, piece %q:\n got  %d\n want %d", mergeNames(tok), piece, got, want)
			}
		}
		piece := []byte(rapid.StringMatching(`[abc]{200,400}`).Draw(t, "long piece"))
		if got, want := m.append(nil, piece), naiveEncode(tok, piece); !slices.Equal(got, want) {
			t.Fatalf("merges %q, piece %q:\n got  %d\n want %d", mergeNames(tok), piece, got, want)
		}
	})
}

func TestDecodeGivesBackEveryByte(t *testing.T) {
	tok := sample()
	e := tok.NewEncoder()
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 100_000 {
		text := make([]byte, rng.IntN(40))
		for k := range text {
			text[k] = byte(rng.Uint32())
			if i%2 == 0 { // more of the bytes that make sense together
				text[k] = pieces[rng.IntN(len(pieces))][0]
			}
		}
		if got := tok.Decode(nil, e.Encode(nil, text)); !bytes.Equal(got, text) {
			t.Fatalf("text %q came back as %q", text, got)
		}
	}
}

// An encoder whose caches are full and turned over gives the same tokens as a new one.
func TestCachesDoNotChangeTokens(t *testing.T) {
	tok := sample()
	e := tok.NewEncoder()
	rng := rand.New(rand.NewPCG(3, 4))
	var texts [][]byte
	for range 40 {
		var b bytes.Buffer
		for range 20_000 {
			fmt.Fprintf(&b, " %x", rng.Uint64()>>(rng.IntN(60)))
			if rng.IntN(4) == 0 {
				fmt.Fprintf(&b, "%s", strings.Repeat(string(rune('a'+rng.IntN(26))), rng.IntN(40)))
			}
		}
		texts = append(texts, b.Bytes())
	}
	for round := range 2 {
		for i, text := range texts {
			got := e.Encode(nil, text)
			if i%8 == round && !slices.Equal(got, tok.NewEncoder().Encode(nil, text)) {
				t.Fatalf("round %d, text %d: the used encoder differs from a new one", round, i)
			}
		}
	}
	if len(e.words.lines) <= minLines || len(e.late.lines) <= minLines {
		t.Errorf("the word caches have %d and %d lines: they never grew, so this test shows nothing",
			len(e.words.lines), len(e.late.lines))
	}
	if len(e.pieces.pieces.arena) > maxPieceBytes {
		t.Errorf("the piece cache holds %d bytes, over its bound of %d", len(e.pieces.pieces.arena), maxPieceBytes)
	}
}

func TestEncodersRunSideBySide(t *testing.T) {
	tok := sample()
	text := []byte(strings.Repeat("The words that they'll say, 12345 times {\n\t\tover }\n", 200))
	want := tok.NewEncoder().Encode(nil, text)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := tok.EncodeSpecial(text); !slices.Equal(got, want) {
				t.Errorf("got %d tokens, want %d", len(got), len(want))
			}
		})
	}
	wg.Wait()
}

// A quarter of a megabyte of one pretoken, or of what makes patterns backtrack. Quadratic work would take a minute;
// the bound leaves room for a busy machine (a quiet one takes 5 ms).
func TestWorstCasesAreLinear(t *testing.T) {
	nfc := mustRead(t, edit(t, "testdata/hf_llama3.json",
		func(doc map[string]any) { doc["normalizer"] = map[string]any{"type": "NFC"} }))
	for name, tok := range map[string]*Tokenizer{"llama3": sample(), "o200k": sampleWith("o200k"), "nfc": nfc} {
		for _, unit := range []string{
			"a", " ", "\n", " \n", "1", "-", "'", "ha", "Ж", "\xff", strings.Repeat("\t", 70) + "x", "\x00",
			"aA", "A", "中A", "/\n", "\n/", "a's", "\u0301", "A\u0301", "\u0301A",
		} {
			checkLinear(t, name, tok, bytes.Repeat([]byte(unit), 1<<18/len(unit)), 2*time.Second)
		}
	}
}

// Ten megabytes of what others have hung on, and of noise.
func TestTenMegabytesAreLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	rng := rand.New(rand.NewPCG(9, 10))
	noise := make([]byte, 10_000_000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	checkLinear(t, "noise", sample(), noise[:2_000_000], 30*time.Second)
	for _, unit := range []string{"a", " ", "7"} {
		checkLinear(t, "llama3", sample(), bytes.Repeat([]byte(unit), len(noise)), 30*time.Second)
	}
}

// checkLinear fails where text takes longer than most, does not come back, or leaves much memory behind.
func checkLinear(t *testing.T, name string, tok *Tokenizer, text []byte, most time.Duration) {
	t.Helper()
	e := tok.NewEncoder()
	start := time.Now()
	ids := e.Encode(nil, text)
	if took := time.Since(start); took > most {
		t.Errorf("%s, %d bytes of %+.20q: %v", name, len(text), text, took)
	}
	if !bytes.Equal(tok.Decode(nil, ids), tok.normalize(nil, text)) {
		t.Errorf("%s, %.20q: decoding does not give the text back", name, text)
	}
	if held := cap(e.merge.ids) + cap(e.merge.at); held > 2*keepQueue {
		t.Errorf("%s, %.20q: the encoder keeps a queue of %d", name, text, held)
	}
	if held := len(e.pieces.pieces.arena); held > maxPieceBytes {
		t.Errorf("%s, %.20q: the encoder keeps %d bytes of pieces", name, text, held)
	}
}

func TestEncodeAppends(t *testing.T) {
	e := sample().NewEncoder()
	dst := []uint32{7, 8}
	got := e.Encode(dst, []byte("The word"))
	if !slices.Equal(got[:2], []uint32{7, 8}) || !slices.Equal(got[2:], e.Encode(nil, []byte("The word"))) {
		t.Errorf("got %d", got)
	}
	if ids := e.Encode(nil, nil); len(ids) != 0 {
		t.Errorf("no text gave %d", ids)
	}
}
