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

// maxRankedToken bounds the length of a token in a rank file, whose splits are all looked up. Published ones stay below
// 130 bytes.
const maxRankedToken = 1024

// ReadTiktoken reads a tiktoken rank file: lines of a token in base64, a space, and its rank, which is its id. The file
// has neither the pattern nor the special tokens, so they are given; pattern is as in [TrainOptions].
//
// A rank file says which tokens there are and which go first, not how they are made. As in other converters, each way
// to put a token together from two others becomes a merge, in the order of (rank, rank of the left part), and a pretoken
// that is a token is taken whole.
func ReadTiktoken(r io.Reader, pattern string, specials map[string]uint32) (*Tokenizer, error) {
	p, err := parsePattern(pattern)
	if err != nil {
		return nil, err
	}
	vocab, ids, err := readRanks(io.LimitReader(r, maxFile))
	if err != nil {
		return nil, err
	}
	var list []Special
	for text, id := range specials {
		list = append(list, Special{ID: id, Text: text})
	}
	return newTokenizer(p, vocab, ids, mergesOfRanks(vocab, ids), list, true)
}

func readRanks(r io.Reader) (*interner, []uint32, error) {
	vocab := &interner{}
	var ids []uint32
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if len(line) == 0 {
			continue
		}
		token, rank, _ := bytes.Cut(line, []byte(" "))
		b, err := base64.StdEncoding.AppendDecode(nil, token)
		if err != nil || len(b) == 0 || len(b) > maxRankedToken {
			return nil, nil, fmt.Errorf("line %d: %.100q is not a token in base64, of at most %d bytes", n, token, maxRankedToken)
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

// mergesOfRanks finds all ways to make each token from two others.
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
	slices.SortFunc(merges, func(a, b merge) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.left, b.left)) })
	return merges
}
