package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"anneal/tokenizer"
	"anneal/use"
)

// A wording has the log-probabilities of a choice's tokens in the form of OpenAI's API. A nil *wording has none.
type wording struct {
	r      *use.Trained
	prompt int // tokens of the prompt that have not been added yet
	offset int // characters of the text before the next token; less than 0 before it begins
	end    int // characters of the text of the prompt
	text   *tokenizer.StreamDecoder
	lists
}

// lists holds the fields of each token.
type lists struct {
	Tokens   []string   `json:"tokens"`
	Logprobs []*float64 `json:"token_logprobs"` // nil for the first token of a text, which nothing predicts
	Top      []likely   `json:"top_logprobs"`
	Offset   []int      `json:"text_offset"`
}

// likely holds log-probabilities of words of tokens, the most likely one first, as some clients expect. A nil likely is
// null in JSON, others are objects.
type likely []wordLogprob

type wordLogprob struct {
	word    string
	logprob float64
}

// set returns l with the log-probability of a word. Of equals, the one that was set first stays first.
func (l likely) set(word string, logprob float64) likely {
	i := slices.IndexFunc(l, func(x wordLogprob) bool { return x.word == word })
	if i < 0 {
		l, i = append(l, wordLogprob{word: word}), len(l)
	}
	l[i].logprob = logprob
	slices.SortStableFunc(l, func(a, b wordLogprob) int { return cmp.Compare(b.logprob, a.logprob) })
	return l
}

// MarshalJSON implements json.Marshaler.
func (l likely) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("null"), nil
	}
	text := []byte{'{'}
	for i, x := range l {
		one, err := json.Marshal(map[string]float64{x.word: x.logprob})
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, one[1:len(one)-1]...)
	}
	return append(text, '}'), nil
}

// newWording returns the wording of a choice. With echo it begins with the prompt.
func newWording(r *use.Trained, echo bool, p prompt) *wording {
	x := &wording{r: r, text: r.Tokenizer.NewStreamDecoder()}
	if echo {
		x.prompt, x.end = len(p.ids)-1, utf8.RuneCountInString(p.text)
		// the text does not contain special tokens that were put before it
		x.offset = x.end - utf8.RuneCountInString(textOf(r, p.ids))
		x.append(p.ids[0], nil, nil)
		x.begin()
	}
	return x
}

// add adds a token, and returns whether it belongs to the prompt.
func (x *wording) add(t use.Token) (ofPrompt bool) {
	if ofPrompt = x.prompt > 0; ofPrompt {
		x.prompt--
	}
	top := likely{}
	for _, l := range t.Top {
		if finite(l.Logprob) {
			top = top.set(x.word(l.ID), l.Logprob)
		}
	}
	var p *float64
	if finite(t.Logprob) {
		value := t.Logprob // a pointer into t would keep all of it
		p, top = &value, top.set(x.word(t.ID), value)
	}
	x.append(t.ID, p, top)
	if ofPrompt {
		x.begin()
	}
	return ofPrompt
}

func (x *wording) append(id int32, p *float64, top likely) {
	text, alone := x.text.Next(uint32(id)), x.r.Tokenizer.NewStreamDecoder().Next(uint32(id))
	n := utf8.RuneCountInString(text)
	before := max(0, n-utf8.RuneCountInString(alone)) // bytes of earlier tokens that turn out not to begin a character
	x.Tokens, x.Offset = append(x.Tokens, x.word(id)), append(x.Offset, max(x.offset+before, 0))
	x.Logprobs, x.Top = append(x.Logprobs, p), append(x.Top, top)
	x.offset += n
}

// begin begins the generated text, once the whole prompt was added. Characters do not extend across the end of the
// prompt.
func (x *wording) begin() {
	if x.prompt == 0 {
		x.text.Flush()
		x.offset = x.end
	}
}

// word is a token as text, or, if it is a part of a character, by its bytes.
func (x *wording) word(id int32) string {
	b := x.r.Tokenizer.Token(uint32(id))
	if utf8.Valid(b) {
		return string(b)
	}
	var text strings.Builder
	text.WriteString("bytes:")
	for _, c := range b {
		fmt.Fprintf(&text, "\\x%02x", c)
	}
	return text.String()
}

// take returns what was added since the last call; nil if nothing was.
func (x *wording) take() any {
	if x == nil || len(x.Tokens) == 0 {
		return nil
	}
	l := x.lists
	x.lists = lists{}
	return l
}

func finite(p float64) bool { return !math.IsNaN(p) && !math.IsInf(p, 0) }

// textOf returns the text of tokens, as a stream has it.
func textOf(r *use.Trained, ids []int32) string {
	var text strings.Builder
	d := r.Tokenizer.NewStreamDecoder()
	for _, id := range ids {
		text.WriteString(d.Next(uint32(id)))
	}
	text.WriteString(d.Flush())
	return text.String()
}
