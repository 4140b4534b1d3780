package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
)

// Tokenizer identifies the tokenizer of a dataset.
type Tokenizer struct {
	Path   string   // of its file, for messages; not compared
	SHA256 [32]byte // of the parts that determine its tokens
	Vocab  int      // number of token ids
	EOT    uint32   // the token that delimits documents
}

// tokenBytes returns the storage size of a token.
func (t Tokenizer) tokenBytes() uint32 {
	if t.Vocab <= 1<<16 {
		return 2
	}
	return 4
}

func (t Tokenizer) check() error {
	if t.Vocab < 1 || t.Vocab > maxVocab {
		return fmt.Errorf("vocabulary size %d is not between 1 and %d", t.Vocab, maxVocab)
	}
	if int64(t.EOT) >= int64(t.Vocab) {
		return fmt.Errorf("the end-of-text token has id %d, but the vocabulary has only %d entries\n"+
			"  use a tokenizer with an end-of-text token, such as <|endoftext|>", t.EOT, t.Vocab)
	}
	return nil
}

// holds returns an error unless ids are valid for a text.
func (t Tokenizer) holds(ids []uint32) error {
	for _, id := range ids {
		if int64(id) >= int64(t.Vocab) || id == t.EOT {
			return fmt.Errorf("id %d in a text: ids of text must be below the vocabulary size %d and differ from the "+
				"end-of-text id %d", id, t.Vocab, t.EOT)
		}
	}
	return nil
}

// Dataset is an open dataset. Close it after the last use of its Loaders.
type Dataset struct {
	Dir      string
	Manifest Manifest

	train, val  split
	fingerprint string
}

// split is the token stream of one split.
type split struct {
	shards []*shard
	starts []uint64 // position of the first token of each shard in the stream
	tokens uint64
}

// Open opens the dataset in dir. It checks the manifest, the header of each shard and that they agree. The content of
// the shards is checked as it is read, or completely by Verify.
func Open(dir string) (*Dataset, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Dir: dir, Manifest: m}
	sum := sha256.New()
	for _, part := range []struct {
		info *SplitInfo
		to   *split
	}{{&m.Train, &d.train}, {&m.Val, &d.val}} {
		for _, info := range part.info.Shards {
			s, err := d.openShard(info)
			if err != nil {
				d.Close()
				return nil, err
			}
			part.to.shards = append(part.to.shards, s)
			part.to.starts = append(part.to.starts, part.to.tokens)
			part.to.tokens += s.h.tokens
			sum.Write(s.h.encode())
		}
		sum.Write([]byte{0}) // the end of a split
	}
	d.fingerprint = hex.EncodeToString(sum.Sum(nil))
	return d, nil
}

func (d *Dataset) openShard(info ShardInfo) (*shard, error) {
	s, err := openShard(filepath.Join(d.Dir, filepath.FromSlash(info.Path)))
	if err != nil {
		return nil, err
	}
	if err := d.matches(s, info); err != nil {
		s.f.Close()
		return nil, err
	}
	return s, nil
}

// matches returns an error unless a shard is the one described by the manifest.
func (d *Dataset) matches(s *shard, info ShardInfo) error {
	want, got := d.Manifest.Tokenizer, s.h.tokenizer
	if hash := hex.EncodeToString(got.SHA256[:]); hash != want.SHA256 || got.Vocab != want.VocabSize ||
		got.EOT != want.EOT {
		return fmt.Errorf("shard %s was tokenised with %s (vocabulary %d, EOT %d), "+
			"but the manifest of %s says %s (vocabulary %d, EOT %d)\n  rebuild the data with `anneal data build`",
			s.path, hash, got.Vocab, got.EOT, d.Dir, want.SHA256, want.VocabSize, want.EOT)
	}
	if c := (Counts{s.h.docs, s.h.tokens, s.h.textBytes, s.h.promptTokens}); c != info.Counts || s.head != info.Header {
		return fmt.Errorf("shard %s holds %d documents and %d tokens (header %08x), but the manifest says %d and %d "+
			"(%08x): the shard was replaced after the build\n  rebuild the data with `anneal data build`",
			s.path, c.Documents, c.Tokens, s.head, info.Documents, info.Tokens, info.Header)
	}
	return nil
}

// Close closes the shards.
func (d *Dataset) Close() {
	for _, s := range append(d.train.shards, d.val.shards...) {
		s.f.Close()
	}
}

// Fingerprint returns a hash of the headers of all shards, which hold checksums of their content: two datasets with
// the same fingerprint hold the same tokens in the same order. It has 64 hexadecimal digits.
func (d *Dataset) Fingerprint() string { return d.fingerprint }

// RequireTokenizer returns an error that names both tokenizers unless the data was tokenised with t.
func (d *Dataset) RequireTokenizer(t Tokenizer) error {
	want, got := hex.EncodeToString(t.SHA256[:]), d.Manifest.Tokenizer
	if want == got.SHA256 && t.Vocab == got.VocabSize && t.EOT == got.EOT {
		return nil
	}
	return fmt.Errorf("the data in %s was tokenised with %s %s (vocabulary %d, "+
		"EOT %d), but this run uses %s %s (vocabulary %d, EOT %d)\n"+
		"  rebuild the data with `anneal data build --tokenizer %[6]s`, or pass the tokenizer it was built with",
		d.Dir, got.Path, got.SHA256, got.VocabSize, got.EOT, t.Path, want, t.Vocab, t.EOT)
}

// Verify reads every shard and checks every byte. It returns the first fault with its shard and position.
func (d *Dataset) Verify() error {
	var buf scratch
	for _, s := range append(d.train.shards[:len(d.train.shards):len(d.train.shards)], d.val.shards...) {
		if err := s.verify(&buf); err != nil {
			return err
		}
	}
	return nil
}

// read fills dst with the tokens of the stream from pos on, which must be in range.
func (p *split) read(dst []uint32, pos uint64, buf *scratch) error {
	i := p.find(pos)
	for len(dst) > 0 {
		s := p.shards[i]
		at := pos - p.starts[i]
		n := min(uint64(len(dst)), s.h.tokens-at)
		if err := s.read(dst[:n], at, buf); err != nil {
			return err
		}
		dst, pos, i = dst[n:], pos+n, i+1
	}
	return nil
}

// find returns the shard that holds position pos.
func (p *split) find(pos uint64) int {
	lo, hi := 0, len(p.starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; p.starts[mid] <= pos {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
