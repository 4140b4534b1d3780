package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
)

// hfPre is a pre-tokenizer, decoder or normalizer of any of the supported types.
type hfPre struct {
	Type           string            `json:"type"`
	AddPrefixSpace *bool             `json:"add_prefix_space"`
	TrimOffsets    bool              `json:"trim_offsets"` // offsets are not reported here
	UseRegex       *bool             `json:"use_regex"`
	Pattern        *hfPattern        `json:"pattern"`
	Behavior       string            `json:"behavior"`
	Invert         bool              `json:"invert"`
	Pretokenizers  []json.RawMessage `json:"pretokenizers"`
}

type hfPattern struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

// parsePreTokenizer finds the pattern: that of ByteLevel with use_regex, or of the one Split before a ByteLevel without.
func parsePreTokenizer(v []byte) (pattern, error) {
	if isNull(v) {
		return pattern{}, errors.New("missing; only byte-level tokenizers are supported")
	}
	var pre hfPre
	if err := strict(v, &pre); err != nil {
		return pattern{}, err
	}
	if pre.Type != "Sequence" {
		own, err := pre.byteLevel()
		if err == nil && !own {
			err = errors.New("use_regex is false and no Split comes before: texts would be one pretoken each")
		}
		if err != nil {
			return pattern{}, err
		}
		return patterns[gpt2], nil
	}
	if n := len(pre.Pretokenizers); n == 1 {
		return parsePreTokenizer(pre.Pretokenizers[0])
	} else if n != 2 {
		return pattern{}, fmt.Errorf("pretokenizers: %d of them; supported is one Split, then ByteLevel", n)
	}
	var split, last hfPre
	if err := strict(pre.Pretokenizers[0], &split); err != nil {
		return pattern{}, fmt.Errorf("pretokenizers[0]: %w", err)
	}
	if err := strict(pre.Pretokenizers[1], &last); err != nil {
		return pattern{}, fmt.Errorf("pretokenizers[1]: %w", err)
	}
	own, err := last.byteLevel()
	if err == nil && own {
		err = errors.New("use_regex is true: texts would be split twice")
	}
	if err != nil {
		return pattern{}, fmt.Errorf("pretokenizers[1]: %w", err)
	}
	p, err := split.split()
	if err != nil {
		return pattern{}, fmt.Errorf("pretokenizers[0]: %w", err)
	}
	return p, nil
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
	if p.Type != "Split" {
		return pattern{}, fmt.Errorf("type: %.100q where Split is supported", p.Type)
	}
	if p.Pattern == nil || p.Pattern.Regex == nil {
		return pattern{}, errors.New("pattern: only {\"Regex\": …} is supported")
	}
	found, err := parsePattern(*p.Pattern.Regex)
	if err != nil {
		return pattern{}, err
	}
	// Known patterns match all of any text: what lies between matches, the only thing on which Isolated and an inverted
	// Removed differ, is nothing.
	inverted := p.Behavior == "Removed" && p.Invert && found.name != ""
	if !inverted && (p.Behavior != "Isolated" || p.Invert) {
		return pattern{}, fmt.Errorf("behavior: %.100q with invert %v is not supported, only Isolated", p.Behavior, p.Invert)
	}
	return found, nil
}

// checkDecoder accepts what undoes the byte-level alphabet.
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

// emptySequence reports whether v is a normalizer that does nothing.
func emptySequence(v []byte) bool {
	var n struct {
		Type        string            `json:"type"`
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	return strict(v, &n) == nil && n.Type == "Sequence" && len(n.Normalizers) == 0
}
