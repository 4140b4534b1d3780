package tokenizer

import (
	"bufio"
	"fmt"
	"io"

	"anneal/internal/fileio"
)

// Save writes the tokenizer as a Hugging Face tokenizer.json that the tokenizers library reads with the same effect.
// The file appears under its name only when it is complete. This format cannot name the token that ends a text. If the
// special tokens alone do not decide it, tok_config.json is written beside tok.json; an existing one is updated.
func (t *Tokenizer) Save(path string) error {
	if err := t.writeHF(path); err != nil {
		return err
	}
	return t.writeEndOfText(path)
}

// writeHF writes a tokenizer.json.
func (t *Tokenizer) writeHF(path string) error {
	return fileio.Write(path, func(w io.Writer) error {
		_, err := t.WriteTo(w)
		return err
	})
}

// WriteTo writes the tokenizer as a Hugging Face tokenizer.json.
func (t *Tokenizer) WriteTo(w io.Writer) (int64, error) {
	count := &countingWriter{w: w}
	b := bufio.NewWriterSize(count, 1<<16)
	fmt.Fprintf(b, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [")
	for i, s := range t.specials {
		fmt.Fprintf(b, "%s\n    {\"id\": %d, \"content\": %s, \"single_word\": %v, \"lstrip\": %v, \"rstrip\": %v, "+
			"\"normalized\": %v, \"special\": %v}",
			comma(i), s.ID, appendQuoted(nil, []byte(s.Text)), s.SingleWord, s.LStrip, s.RStrip, s.Normalized, !s.Added)
	}
	post := t.post
	if isNull(post) {
		post = []byte(`{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true}`)
	}
	normalizer := "null"
	if t.nfc {
		normalizer = `{"type": "NFC"}`
	}
	fmt.Fprintf(b, "\n  ],\n  \"normalizer\": %s,\n  \"pre_tokenizer\": %s,\n  \"post_processor\": %s,\n",
		normalizer, t.pattern.preTokenizer(), post)
	fmt.Fprintf(b, "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, "+
		"\"use_regex\": true},\n")
	fmt.Fprintf(b, "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": null,\n"+
		"    \"continuing_subword_prefix\": null,\n")
	fmt.Fprintf(b, "    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n    \"byte_fallback\": false,\n"+
		"    \"ignore_merges\": %v,\n", t.ignoreMerges)
	t.writeVocab(b)
	t.writeMerges(b)
	fmt.Fprintf(b, "  }\n}\n")
	err := b.Flush()
	return count.n, err
}

// writeVocab writes all tokens by id, including special ones, because readers do not renumber the ids of the
// vocabulary as they do those of added tokens.
func (t *Tokenizer) writeVocab(b *bufio.Writer) {
	fmt.Fprintf(b, "    \"vocab\": {")
	t.writeTokens(b, "\n      ")
	fmt.Fprintf(b, "\n    },\n")
}

// writeTokens writes the members of an object of tokens with their ids, each behind indent.
func (t *Tokenizer) writeTokens(b *bufio.Writer, indent string) {
	var line []byte
	first := 0
	for id, ref := range t.byID {
		if ref == 0 {
			continue
		}
		name := t.Token(uint32(id))
		if ref > 0 {
			name = appendByteLevel(nil, name)
		}
		line = append(line[:0], comma(first)...)
		line = append(line, indent...)
		line = appendQuoted(line, name)
		line = fmt.Appendf(line, ": %d", id)
		b.Write(line)
		first = 1
	}
}

func (t *Tokenizer) writeMerges(b *bufio.Writer) {
	fmt.Fprintf(b, "    \"merges\": [")
	var line []byte
	for i, m := range t.merges {
		line = append(line[:0], comma(i)...)
		line = append(line, "\n      ["...)
		line = appendQuoted(line, appendByteLevel(nil, t.Token(m.left)))
		line = append(line, ", "...)
		line = appendQuoted(line, appendByteLevel(nil, t.Token(m.right)))
		line = append(line, ']')
		b.Write(line)
	}
	fmt.Fprintf(b, "\n    ]\n")
}

// comma goes before the i-th item of a list.
func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// preTokenizer is the JSON of the pre-tokenizer that splits by p.
func (p pattern) preTokenizer() string {
	if p.name == "gpt2" {
		return `{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}`
	}
	parts := p.parts
	if parts == nil {
		parts = []pattern{p}
	}
	out := []byte(`{"type": "Sequence", "pretokenizers": [`)
	for _, part := range parts {
		out = fmt.Appendf(out, `
    {"type": "Split", "pattern": {"Regex": %s}, "behavior": "Isolated", "invert": false},`,
			appendQuoted(nil, []byte(part.regex)))
	}
	return string(out) + `
    {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
  ]}`
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
