package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// hfPre is a pre-tokenizer or decoder of any of the supported types.
type hfPre struct {
	Type             string            `json:"type"`
	AddPrefixSpace   *bool             `json:"add_prefix_space"`
	TrimOffsets      bool              `json:"trim_offsets"` // offsets are not reported here
	UseRegex         *bool             `json:"use_regex"`
	Pattern          *hfPattern        `json:"pattern"`
	Behavior         string            `json:"behavior"`
	Invert           bool              `json:"invert"`
	IndividualDigits bool              `json:"individual_digits"`
	Pretokenizers    []json.RawMessage `json:"pretokenizers"`
}

type hfPattern struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

// mostSplits limits the parts of a Sequence. Published ones have up to four.
const mostSplits = 16

// parsePreTokenizer finds the pattern: that of ByteLevel with use_regex, or those of the parts before it.
func parsePreTokenizer(v []byte) (pattern, error) {
	if isNull(v) {
		return pattern{}, errors.New("missing; only byte-level tokenizers are supported")
	}
	var pre hfPre
	if err := strict(v, &pre); err != nil {
		return pattern{}, err
	}
	list := []json.RawMessage{v}
	if pre.Type == "Sequence" {
		list = pre.Pretokenizers
	}
	if len(list) == 0 || len(list) > mostSplits {
		return pattern{}, fmt.Errorf("pretokenizers: %d of them; supported are 1 to %d, the last one ByteLevel",
			len(list), mostSplits)
	}
	var parts []pattern
	for i, v := range list {
		part, err := parseSplit(v, i == len(list)-1)
		if err != nil && pre.Type == "Sequence" {
			err = fmt.Errorf("pretokenizers[%d]: %w", i, err)
		}
		if err != nil {
			return pattern{}, err
		}
		if part.regex != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return pattern{}, errors.New("use_regex is false and no Split comes before: texts would be one pretoken each")
	}
	return chain(parts), nil
}

// parseSplit finds the pattern of one part of a pre-tokenizer; a last one, ByteLevel, may have none.
func parseSplit(v []byte, last bool) (pattern, error) {
	var p hfPre
	if err := strict(v, &p); err != nil {
		return pattern{}, err
	}
	if last {
		if own, err := p.byteLevel(); err != nil || !own {
			return pattern{}, err
		}
		return patterns[gpt2], nil
	}
	switch p.Type {
	case "Digits":
		if p.IndividualDigits {
			return parseRegex(`\p{N}`)
		}
		return parseRegex(`\p{N}+`)
	case "Split":
		return p.split()
	}
	return pattern{}, fmt.Errorf("type: %.100q where Split and Digits are supported", p.Type)
}

// byteLevel checks that p is a ByteLevel that adds no space, and reports whether it splits by the GPT-2 pattern.
func (p *hfPre) byteLevel() (splits bool, err error) {
	if p.Type != "ByteLevel" {
		return false, fmt.Errorf("type: %.100q where ByteLevel is supported", p.Type)
	}
	if p.AddPrefixSpace == nil || *p.AddPrefixSpace {
		return false, errors.New("add_prefix_space: only false is supported: texts are encoded as they are")
	}
	return p.UseRegex == nil || *p.UseRegex, nil
}

// split returns the pattern of a Split.
func (p *hfPre) split() (pattern, error) {
	regex := ""
	switch {
	case p.Pattern != nil && p.Pattern.Regex != nil:
		regex = *p.Pattern.Regex
	case p.Pattern != nil && p.Pattern.String != nil:
		regex = regexp.QuoteMeta(*p.Pattern.String)
	}
	found, err := parseRegex(regex)
	if err != nil {
		return pattern{}, err
	}
	// Known patterns match the whole of any text. Isolated and an inverted Removed differ only in the text between
	// matches, which is empty.
	inverted := p.Behavior == "Removed" && p.Invert && found.name != ""
	if !inverted && (p.Behavior != "Isolated" || p.Invert) {
		return pattern{}, fmt.Errorf("behavior: %.100q with invert %v is not supported, only Isolated",
			p.Behavior, p.Invert)
	}
	return found, nil
}

// checkDecoder accepts decoders that undo the byte-level alphabet.
func checkDecoder(v []byte) error {
	if isNull(v) {
		return nil
	}
	var d hfPre
	if err := strict(v, &d); err != nil {
		return fmt.Errorf("decoder: %w", err)
	}
	if d.Type != "ByteLevel" {
		return fmt.Errorf("decoder.type: %.100q where ByteLevel is supported", d.Type)
	}
	return nil
}

// parseNormalizer reports whether v is NFC. The only other normalizer that it accepts, alone or in a Sequence, is
// none.
func parseNormalizer(v []byte) (nfc bool, err error) {
	if isNull(v) {
		return false, nil
	}
	var n struct {
		Type        string            `json:"type"`
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	if err := strict(v, &n); err != nil {
		return false, fmt.Errorf("normalizer: %w", err)
	}
	switch {
	case n.Type == "NFC":
		return true, nil
	case n.Type == "Sequence" && len(n.Normalizers) == 0:
		return false, nil
	case n.Type == "Sequence" && len(n.Normalizers) == 1:
		var only struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(n.Normalizers[0], &only); err == nil && only.Type == "NFC" {
			return true, nil
		}
	}
	return false, fmt.Errorf("normalizer: %.100q is not supported, only NFC: text is encoded byte for byte otherwise",
		n.Type)
}

// hfPost is a post-processor of any of the supported types.
type hfPost struct {
	Type           string              `json:"type"`
	Processors     []json.RawMessage   `json:"processors"`
	Single         []hfPiece           `json:"single"`
	Pair           json.RawMessage     `json:"pair"` // template for two texts, which are not encoded here
	SpecialTokens  map[string]hfTokens `json:"special_tokens"`
	Sep            *hfNamed            `json:"sep"`
	CLS            *hfNamed            `json:"cls"`
	AddPrefixSpace bool                `json:"add_prefix_space"` // of offsets, as is the next
	TrimOffsets    bool                `json:"trim_offsets"`
	UseRegex       bool                `json:"use_regex"`
}

// hfPiece is a part of a template: a token by name, or the text.
type hfPiece struct {
	SpecialToken *hfSlot `json:",omitempty"`
	Sequence     *hfSlot `json:",omitempty"`
}

type hfSlot struct {
	ID   string `json:"id"`
	Type int    `json:"type_id"` // of segments, which models of text do not know
}

type hfTokens struct {
	ID     string   `json:"id"`
	IDs    []uint32 `json:"ids"`
	Tokens []string `json:"tokens"`
}

// hfNamed is a token and its id.
type hfNamed struct {
	name string
	id   uint32
}

func (n *hfNamed) UnmarshalJSON(v []byte) error { return json.Unmarshal(v, &[]any{&n.name, &n.id}) }

// parsePost returns the tokens that a post-processor puts before and after a text. whole says that it is not part of a
// Sequence, so it may be a Sequence itself.
func parsePost(v []byte, t *Tokenizer, whole bool) (before, after []uint32, err error) {
	if isNull(v) {
		return nil, nil, nil
	}
	var p hfPost
	if err := strict(v, &p); err != nil {
		return nil, nil, fmt.Errorf("post_processor: %w", err)
	}
	switch {
	case p.Type == "ByteLevel": // about offsets
	case p.Type == "TemplateProcessing":
		before, after, err = p.template()
	case p.Type == "RobertaProcessing" || p.Type == "BertProcessing":
		if p.Sep == nil || p.CLS == nil {
			return nil, nil, errors.New("post_processor: sep or cls are missing")
		}
		before, after = []uint32{p.CLS.id}, []uint32{p.Sep.id}
	case p.Type == "Sequence" && whole:
		for i, v := range p.Processors {
			b, a, err := parsePost(v, t, false)
			if err != nil {
				return nil, nil, fmt.Errorf("post_processor.processors[%d]: %w", i, err)
			}
			// A later post-processor wraps the result of the earlier ones.
			before, after = append(b, before...), append(after, a...)
		}
	default:
		err = fmt.Errorf("post_processor: %.100q is not supported, only TemplateProcessing, ByteLevel, "+
			"RobertaProcessing, BertProcessing and a Sequence of them", p.Type)
	}
	for _, id := range append(slices.Clone(before), after...) {
		if err == nil && t.Token(id) == nil {
			err = fmt.Errorf("post_processor: there is no token %d", id)
		}
	}
	return before, after, err
}

// template returns the tokens before and after the text in the template of one text.
func (p *hfPost) template() (before, after []uint32, err error) {
	texts := 0
	for _, piece := range p.Single {
		var ids []uint32
		if slot := piece.SpecialToken; slot != nil {
			known, ok := p.SpecialTokens[slot.ID]
			if !ok {
				return nil, nil, fmt.Errorf("post_processor.single: special_tokens does not have %.100q", slot.ID)
			}
			ids = known.IDs
		}
		switch {
		case piece.Sequence != nil && piece.Sequence.ID == "A":
			texts++
		case piece.SpecialToken == nil:
			return nil, nil, errors.New("post_processor.single: supported are SpecialToken and the Sequence A")
		case texts == 0:
			before = append(before, ids...)
		default:
			after = append(after, ids...)
		}
	}
	if texts != 1 {
		return nil, nil, fmt.Errorf("post_processor.single: the text is in it %d times, not once", texts)
	}
	return before, after, nil
}
