package tokenizer

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// maxRankedToken limits the length of a token in a rank file, because all of its splits are looked up. Published
// tokens are shorter than 130 bytes.
const maxRankedToken = 1024

// published lists well-known rank files by their number of tokens, with the properties that they do not contain.
var published = map[int]struct {
	pattern  grammar
	specials map[string]uint32
}{
	50256: {gpt2, map[string]uint32{"<|endoftext|>": 50256}},
	50280: {gpt2, map[string]uint32{"<|endoftext|>": 50256}},
	100256: {cl100k, map[string]uint32{"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259,
		"<|fim_suffix|>": 100260, "<|endofprompt|>": 100276}},
	128000: {llama3, map[string]uint32{"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001}},
	199998: {o200k, map[string]uint32{"<|endoftext|>": 199999, "<|endofprompt|>": 200018}},
}

// ReadTiktoken reads a tiktoken rank file: lines of a token in base64, a space, and its rank, which is its id. The
// file contains neither the pattern nor the special tokens, so they are given; pattern is as in [TrainOptions].
// Without a pattern, files with as many tokens as r50k, p50k, cl100k, o200k and Llama 3 get the patterns of these
// and, unless others are given, their special tokens that mark the structure of a text.
//
// A rank file lists tokens and their priority, not how they are built. As in other converters, each way to build a
// token from two others becomes a merge, in the order of (rank, rank of the left part), and a pretoken that is a
// token is encoded as that token.
func ReadTiktoken(r io.Reader, pattern string, specials map[string]uint32) (*Tokenizer, error) {
	file, err := readAll(r)
	if err != nil {
		return nil, err
	}
	vocab, ids, err := readRanks(file)
	if err != nil {
		return nil, err
	}
	if pattern == "" {
		known, ok := published[len(ids)]
		if !ok {
			return nil, fmt.Errorf("the rank file has no pattern, and no well-known tokenizer has %d tokens\n"+
				"  name the pattern: %s or a regular expression", len(ids), patternNames)
		}
		pattern = patterns[known.pattern].name
		if specials == nil {
			specials = known.specials
		}
	}
	p, err := parsePattern(pattern)
	if err != nil {
		return nil, err
	}
	var list []Special
	for text, id := range specials {
		list = append(list, Special{ID: id, Text: text})
	}
	return newTokenizer(p, false, vocab, ids, mergesOfRanks(vocab, ids), list, true)
}

func readRanks(file []byte) (*interner, []uint32, error) {
	vocab := &interner{}
	var ids []uint32
	lines := bufio.NewScanner(bytes.NewReader(file))
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if len(line) == 0 {
			continue
		}
		token, rank, _ := bytes.Cut(line, []byte(" "))
		b, err := base64.StdEncoding.AppendDecode(nil, token)
		if err != nil || len(b) == 0 || len(b) > maxRankedToken {
			return nil, nil, fmt.Errorf("line %d: %.100q is not a base64 token of at most %d bytes",
				n, token, maxRankedToken)
		}
		id, err := strconv.ParseUint(string(rank), 10, 32)
		if err != nil || id >= maxVocab {
			return nil, nil, fmt.Errorf("line %d: %.100q is not a rank below %d", n, rank, maxVocab)
		}
		if vocab.add(b) < len(ids) {
			return nil, nil, fmt.Errorf("line %d: the token %.100q occurs twice", n, b)
		}
		ids = append(ids, uint32(id))
	}
	return vocab, ids, lines.Err()
}

// mergesOfRanks finds all ways to build each token from two others.
func mergesOfRanks(vocab *interner, ids []uint32) []merge {
	var merges []merge
	for n, id := range ids {
		token := vocab.at(n)
		for i := 1; i < len(token); i++ {
			left := vocab.find(token[:i])
			if left < 0 {
				continue
			}
			if right := vocab.find(token[i:]); right >= 0 {
				merges = append(merges, merge{ids[left], ids[right], id})
			}
		}
	}
	slices.SortFunc(merges, func(a, b merge) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.left, b.left))
	})
	return merges
}

// WriteTiktoken writes the ordinary tokens as a tiktoken rank file, which does not contain the pattern or the special
// tokens.
//
// tiktoken produces the same ids wherever the merge of two tokens into a third is the learned one. It merges any two
// tokens that form a token together, which on text makes a difference for a few pretokens in a million. Merges in
// another order than that of the ids cannot be written.
func (t *Tokenizer) WriteTiktoken(w io.Writer) error {
	made, seen := uint32(0), make([]bool, len(t.byID))
	for _, m := range t.merges {
		if seen[m.id] {
			continue // another way to build the same token
		}
		if seen[m.id] = true; m.id < made {
			return fmt.Errorf("token %.100q has a smaller id than a token that is merged earlier: a rank file cannot "+
				"express that\n"+
				"  try the Hugging Face format", t.Token(m.id))
		}
		made = m.id
	}
	b := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	for id, ref := range t.byID {
		if ref <= 0 {
			continue
		}
		line = base64.StdEncoding.AppendEncode(line[:0], t.Token(uint32(id)))
		line = append(strconv.AppendInt(append(line, ' '), int64(id), 10), '\n')
		b.Write(line)
	}
	return b.Flush()
}
