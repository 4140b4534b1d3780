package prepare

import (
	"errors"
	"fmt"
	"path/filepath"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/tokenizer"
)

// Corpus is the opened data of a run: training data, validation data and the tokenizer of both.
type Corpus struct {
	First         *dataset.Dataset // the first source
	Sources       []Source
	Mixed         *dataset.Mixed // the same as Train, if the sources are mixed
	Train         TrainSource    // nil until OpenTraining
	Tokenizer     *tokenizer.Tokenizer
	TokenizerPath string // of the tokenizer file
	TokenizerJSON []byte
	TokenBytes    []int32 // [V] bytes of text per token, 0 for special tokens

	scored dataset.Packing // packing of rows for evaluation
}

// TrainSource is the training data of a run, with its position.
type TrainSource interface {
	dataset.Source
	State(samples uint64) dataset.State
	Check(dataset.State) error
}

// Source is a data set with its name in data.mix.
type Source struct {
	config.Source
	Set *dataset.Dataset
}

// OpenCorpus opens the data sets of a configuration and fills in the vocabulary size.
func OpenCorpus(cfg *config.Config) (*Corpus, error) {
	c := &Corpus{scored: dataset.Packing(cfg.Train.EvalPacking)}
	if err := c.open(cfg); err != nil {
		c.Close()
		return nil, &dataset.Error{Err: err}
	}
	return c, nil
}

// openSource opens a data set of a configuration, which may not have been validated.
func openSource(s config.Source) (*dataset.Dataset, error) {
	if s.Path == "" {
		return nil, errors.New("there is no data set: data.path is not set\n" +
			"  try data.path=DIR with a directory made by `anneal data build`")
	}
	return dataset.Open(s.Path)
}

func (c *Corpus) open(cfg *config.Config) error {
	sources, err := cfg.Sources()
	if err != nil {
		return err // validation has accepted it before
	}
	for _, s := range sources {
		set, err := openSource(s)
		if err != nil {
			return err
		}
		c.Sources = append(c.Sources, Source{s, set})
	}
	if err := dataset.SameTokenizer(c.sets()); err != nil {
		return err
	}
	c.First = c.Sources[0].Set
	c.TokenizerPath = filepath.Join(c.First.Dir, "tokenizer.json")
	if c.TokenizerJSON, err = fileio.ReadSmall(c.TokenizerPath, tokenizer.MaxFile); err != nil {
		return fmt.Errorf("the data set has no tokenizer: %w\n  rebuild it with `anneal data build`", err)
	}
	if c.Tokenizer, err = OpenTokenizer(c.First); err != nil {
		return err
	}
	vocab := c.First.Manifest.Tokenizer.VocabSize
	if err := cfg.SetVocabulary(vocab, c.First.Dir); err != nil {
		return err
	}
	c.TokenBytes = byteLengths(c.Tokenizer, cfg.Model.Vocab)
	return nil
}

// OpenTraining opens the training splits; data for evaluation only may have none.
func (c *Corpus) OpenTraining(cfg *config.Config) error {
	order, err := cfg.Order()
	if err != nil {
		return err // validation has accepted them before
	}
	train, err := c.openRows(cfg)
	if err != nil {
		return &dataset.Error{Err: err}
	}
	if err := train.Arrange(order); err != nil {
		return &dataset.Error{Err: err}
	}
	train.Skip(cfg.Data.Skip)
	c.Train = train
	return nil
}

// openRows opens the rows of the training splits in random order.
func (c *Corpus) openRows(cfg *config.Config) (rows interface {
	TrainSource
	Arrange(dataset.Order) error
	Skip(dataset.SkipList)
}, err error) {
	packing := dataset.Packing(cfg.Data.Packing)
	if !cfg.Data.Mix.Given() {
		return c.First.PackedLoader(packing, cfg.Model.Context, cfg.Seed)
	}
	c.Mixed, err = dataset.NewMixed(c.sets(), packing, cfg.Model.Context, cfg.Seed, cfg.Mix)
	return c.Mixed, err
}

func (c *Corpus) sets() []*dataset.Dataset {
	sets := make([]*dataset.Dataset, len(c.Sources))
	for i, s := range c.Sources {
		sets[i] = s.Set
	}
	return sets
}

// TakeTurns reads the sources of the mix in turn, in micro-batches of rows rows from one source.
func (c *Corpus) TakeTurns(rows int) error {
	if c.Mixed == nil {
		return config.Problem{
			Key: "data.mix", Message: "group DRO needs several domains, but the config has one data set",
			Try: "data.mix with one source per domain",
		}
	}
	c.Train = turns{c.Mixed, uint64(rows)}
	return nil
}

// HeldOut opens the validation splits in samples of context tokens, packed as train.eval_packing says.
func (c *Corpus) HeldOut(context int) (dataset.HeldOut, error) {
	text := dataset.HeldOut{TokenBytes: c.TokenBytes}
	for _, s := range c.Sources {
		split, err := s.Set.HeldOut(s.Name, c.scored, context)
		if err != nil {
			return text, &dataset.Error{Err: err}
		}
		text.Splits = append(text.Splits, split)
	}
	return text, nil
}

// Trained opens the training splits in samples of context tokens, in order, to be evaluated as held-out text is.
func (c *Corpus) Trained(context int) (dataset.HeldOut, error) {
	text := dataset.HeldOut{TokenBytes: c.TokenBytes}
	for _, s := range c.Sources {
		scan, err := s.Set.ScanRows(c.scored, context)
		if err != nil {
			return text, &dataset.Error{Err: err}
		}
		text.Splits = append(text.Splits, dataset.Split{Name: s.Name, Loader: scan})
	}
	return text, nil
}

// Close closes the data sets.
func (c *Corpus) Close() {
	for _, s := range c.Sources {
		s.Set.Close()
	}
}
