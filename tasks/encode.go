package tasks

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"anneal/tokenizer"
)

// A Sequence is a list of tokens. The tokens from number From on are scored, each given all tokens before it.
type Sequence struct {
	IDs  []int32
	From int // at least 1
	// Shared is the number of tokens at the beginning that equal those of the previous sequence in a list, such as the
	// question before several answers. It is less than From.
	Shared int
}

// shared returns how many of the first tokens of s a model need not read again after it has read before.
func (s Sequence) shared(before Sequence) int {
	n := 0
	for n < min(s.From-1, len(before.IDs)-1) && s.IDs[n] == before.IDs[n] {
		n++
	}
	return n
}

// A Likelihood is a model's score of a sequence.
type Likelihood struct {
	LogProb float64 // sum over the scored tokens, in nats
	Greedy  bool    // each scored token is the most likely one
}

// coder encodes texts, as the harness's models of type hf do.
type coder struct {
	tok        *tokenizer.Tokenizer
	around     [2][]uint32
	prefix     int32 // token before a text without a context
	prefixText string
	context    int // of the model, in tokens
}

func newCoder(tok *tokenizer.Tokenizer, context int) (coder, error) {
	before, after := tok.Around()
	c := coder{tok: tok, around: [2][]uint32{before, after}, context: context}
	if len(before) > 0 {
		c.prefix = int32(before[0])
	} else {
		end, err := tok.EndOfText()
		if err != nil {
			return c, err
		}
		c.prefix = int32(end)
	}
	c.prefixText = string(tok.Token(uint32(c.prefix)))
	return c, nil
}

// encode returns the tokens of a text, with the tokens that the tokenizer puts around a text unless the text already
// begins with the prefix. The names of special tokens in the text become these tokens.
func (c coder) encode(text string) []int32 {
	if strings.HasPrefix(text, c.prefixText) {
		return c.bare(text)
	}
	return slices.Concat(signed(c.around[0]), c.bare(text), signed(c.around[1]))
}

func (c coder) bare(text string) []int32 { return signed(c.tok.EncodeSpecial([]byte(text))) }

func signed(ids []uint32) []int32 {
	list := make([]int32, len(ids))
	for i, id := range ids {
		list[i] = int32(id)
	}
	return list
}

// pair returns the tokens of a continuation after a context. White space at the end of the context belongs to the
// continuation, with which it shares tokens; the tokens of the continuation are those beyond the tokens of the context
// alone. Without a context, the continuation follows the prefix token. A context that is too long loses its beginning.
func (c coder) pair(context, continuation string) (Sequence, error) {
	if context == "" {
		ids := c.bare(continuation)
		if len(ids) == 0 || ids[0] != c.prefix {
			ids = append([]int32{c.prefix}, ids...)
		}
		return c.cut(ids, 1)
	}
	trimmed := strings.TrimRightFunc(context, unicode.IsSpace)
	whole := c.encode(context + continuation)
	return c.cut(whole, min(len(c.encode(trimmed)), len(whole)))
}

// cut keeps as much of the context as the model can read.
func (c coder) cut(ids []int32, from int) (Sequence, error) {
	switch n := len(ids) - from; {
	case n == 0:
		return Sequence{}, fmt.Errorf("the continuation has no tokens of its own")
	case n > c.context:
		return Sequence{}, fmt.Errorf("the continuation has %d tokens, more than the context of %d", n, c.context)
	}
	if drop := len(ids) - (c.context + 1); drop > 0 {
		ids, from = slices.Clone(ids[drop:]), from-drop // so that what is dropped is not kept
	}
	if from == 0 { // nothing is before the first token, so that it cannot be scored
		return Sequence{}, fmt.Errorf("nothing stands before the continuation")
	}
	return Sequence{IDs: ids, From: from}, nil
}

// rolling cuts a text into sequences that score each of its tokens once: windows of the model's context. The last
// window is a full one, too, if the text is long enough: it begins with tokens that are already scored.
func (c coder) rolling(text string) []Sequence { return c.windows(c.encode(text)) }

func (c coder) windows(ids []int32) []Sequence {
	ids = append([]int32{c.prefix}, ids...)
	var list []Sequence
	for done := 1; done < len(ids); {
		end := min(done+c.context, len(ids))
		begin := max(end-c.context-1, 0)
		list = append(list, Sequence{IDs: ids[begin:end], From: done - begin})
		done = end
	}
	return list
}
