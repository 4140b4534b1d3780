package train

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/model"
	"anneal/tokenizer"
)

// corpus is the opened data of a run: training data, validation data and the tokenizer of both.
type corpus struct {
	set           *dataset.Dataset // the first source
	sources       []source
	mixed         *dataset.Mixed // the same as train, if the sources are mixed
	train         trainSource    // nil until openTraining
	tok           *tokenizer.Tokenizer
	path          string // of the tokenizer file
	tokenizerJSON []byte
	byteLen       []int32 // [V] bytes of text per token, 0 for special tokens
}

// trainSource is the training data of a run, with its position.
type trainSource interface {
	dataset.Source
	State(samples uint64) dataset.State
	Check(dataset.State) error
}

// source is a data set with its name in data.mix.
type source struct {
	config.Source
	set *dataset.Dataset
}

// openCorpus opens the data sets of a configuration and fills in the vocabulary size.
func openCorpus(cfg *config.Config) (*corpus, error) {
	c := &corpus{}
	if err := c.open(cfg); err != nil {
		c.close()
		return nil, &DataError{err}
	}
	return c, nil
}

func (c *corpus) open(cfg *config.Config) error {
	sources, err := cfg.Sources()
	if err != nil {
		return err // validation has accepted it before
	}
	for _, s := range sources {
		set, err := dataset.Open(s.Path)
		if err != nil {
			return err
		}
		c.sources = append(c.sources, source{s, set})
	}
	if err := dataset.SameTokenizer(c.sets()); err != nil {
		return err
	}
	c.set = c.sources[0].set
	c.path = filepath.Join(c.set.Dir, "tokenizer.json")
	if c.tokenizerJSON, err = fileio.ReadSmall(c.path, tokenizer.MaxFile); err != nil {
		return fmt.Errorf("the data set has no tokenizer: %w\n  rebuild it with `anneal data build`", err)
	}
	if c.tok, err = OpenTokenizer(c.set); err != nil {
		return err
	}
	vocab := c.set.Manifest.Tokenizer.VocabSize
	if err := cfg.SetVocabulary(vocab, c.set.Dir); err != nil {
		return err
	}
	c.byteLen = byteLengths(c.tok, cfg.Model.Vocab)
	return nil
}

// openTraining opens the training splits; data for evaluation only may have none.
func (c *corpus) openTraining(cfg *config.Config) error {
	order, err := cfg.Order()
	skip, also := dataset.ParseSkips(cfg.Data.Skip)
	if err = errors.Join(err, also); err != nil {
		return err // validation has accepted them before
	}
	train, err := c.openRows(cfg)
	if err != nil {
		return &DataError{err}
	}
	if err := train.Arrange(order); err != nil {
		return &DataError{err}
	}
	train.Skip(skip)
	c.train = train
	return nil
}

// openRows opens the rows of the training splits in random order.
func (c *corpus) openRows(cfg *config.Config) (rows interface {
	trainSource
	Arrange(dataset.Order) error
	Skip(dataset.SkipList)
}, err error) {
	packing := dataset.Packing(cfg.Data.Packing)
	if cfg.Data.Mix == "" {
		return c.set.PackedLoader(packing, cfg.Model.Context, cfg.Seed)
	}
	c.mixed, err = dataset.NewMixed(c.sets(), packing, cfg.Model.Context, cfg.Seed, cfg.Mix)
	return c.mixed, err
}

func (c *corpus) sets() []*dataset.Dataset {
	sets := make([]*dataset.Dataset, len(c.sources))
	for i, s := range c.sources {
		sets[i] = s.set
	}
	return sets
}

// takeTurns reads the sources of the mix in turn, in micro-batches of rows rows from one source.
func (c *corpus) takeTurns(rows int) error {
	if c.mixed == nil {
		return config.Problem{Key: "data.mix", Message: "group DRO needs several domains, but the config has one data set", Try: "data.mix with one source per domain"}
	}
	c.train = turns{c.mixed, uint64(rows)}
	return nil
}

func (c *corpus) close() {
	for _, s := range c.sources {
		s.set.Close()
	}
}

// OpenTokenizer reads the tokenizer beside a data set and checks that the data set was built with it. The data set
// alone decides which token ends a text.
func OpenTokenizer(d *dataset.Dataset) (*tokenizer.Tokenizer, error) {
	path := filepath.Join(d.Dir, "tokenizer.json")
	tok, err := tokenizer.Load(path)
	if err != nil {
		return nil, err
	}
	// Where the token is not there, it is another tokenizer, as RequireTokenizer says.
	_ = tok.SetEndOfText(string(tok.Token(d.Manifest.Tokenizer.EOT)))
	return tok, d.RequireTokenizer(DatasetTokenizer(tok, path))
}

// DatasetTokenizer describes a tokenizer in the form in which data sets identify theirs. A tokenizer without an
// end-of-text token cannot delimit documents; its EOT is then out of range, which package dataset rejects.
func DatasetTokenizer(tok *tokenizer.Tokenizer, path string) dataset.Tokenizer {
	d := dataset.Tokenizer{Path: path, Vocab: tok.VocabSize(), EOT: uint32(tok.VocabSize())}
	if eot, err := tok.EndOfText(); err == nil {
		d.EOT = eot
	}
	hex.Decode(d.SHA256[:], []byte(tok.Hash()))
	return d
}

// byteLengths returns the number of text bytes of each token: 0 for special tokens and for padding of the vocabulary.
func byteLengths(tok *tokenizer.Tokenizer, vocab int) []int32 {
	n := make([]int32, vocab)
	for id := range min(vocab, tok.VocabSize()) {
		n[id] = int32(len(tok.Token(uint32(id))))
	}
	for _, s := range tok.Specials() {
		if int(s.ID) < vocab {
			n[s.ID] = 0
		}
	}
	return n
}

// fill copies a batch of samples into the host memory of a model's batch.
func fill(dst *model.Batch, src *dataset.Batch) {
	for i, id := range src.Tokens {
		dst.Host.Tokens[i] = int32(id)
	}
	copy(dst.Host.Targets, src.Targets)
	copy(dst.Host.Start, src.DocStart)
}
