package dataset

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"

	"anneal/corpus"
	"anneal/internal/fileio"
)

// BuildOptions are the options of Build.
type BuildOptions struct {
	Dir       string    // created if missing; must not hold a dataset unless Replace is set
	Replace   bool      // replace the dataset in Dir, which comes back if the build fails
	Tokenizer Tokenizer // the tokenizer of NewEncoder

	// TokenizerFile is written to Dir as tokenizer.json, so that the dataset is self-contained; may be nil.
	TokenizerFile io.WriterTo

	// TokenizerConfig is written beside it as tokenizer_config.json, which names the token that ends a text for readers
	// of tokenizer.json; may be nil. The manifest names the token too.
	TokenizerConfig []byte

	// NewEncoder returns a function that appends the tokens of a text to dst, for use by one goroutine. It must not
	// produce EOT, not even for text that spells it.
	NewEncoder func() func(dst []uint32, text []byte) []uint32

	// PromptEnd, unless empty, ends the prompt of a document: the text up to and including its first occurrence is
	// input only (its targets are Ignore). A document without it is trained on completely. At least one document must
	// contain it.
	PromptEnd string

	// HeldOut, if not nil, yields the documents of the validation split, and ValFraction is ignored.
	HeldOut iter.Seq2[[]byte, error]

	Lost        func() *corpus.Loss     // the loss of the input, called after the last document; may be nil
	ValFraction float64                 // share of documents held out, 0 to 1; 1 is all of them
	ShardTokens uint64                  // a shard takes no further document above this; default 2^27
	Threads     int                     // default GOMAXPROCS; the output does not depend on it
	Progress    func(train, val Counts) // called regularly, by the goroutine of Build; may be nil
}

func (o BuildOptions) check() error {
	if err := o.Tokenizer.check(); err != nil {
		return err
	}
	if !(o.ValFraction >= 0 && o.ValFraction <= 1) {
		return fmt.Errorf("validation fraction %v is not between 0 and 1", o.ValFraction)
	}
	return nil
}

// Build tokenises docs into a dataset and returns its manifest. The hash of a document's content decides whether it
// is a validation document, so it stays in its split when other documents change, and equal documents stay together.
// If a fraction is requested and there are two different documents, each split gets at least one. The bytes of the
// dataset depend only on the documents and the options, not on Threads. A build that fails or is cancelled removes its
// files, and the directory if it made it. A killed build leaves no manifest, so its files are not a dataset, and the
// next build into the same directory removes them.
//
// docs may reuse the slices that it yields after the next one is requested.
func Build(ctx context.Context, opt BuildOptions, docs iter.Seq2[[]byte, error]) (Manifest, error) {
	if opt.NewEncoder == nil || docs == nil {
		return Manifest{}, fmt.Errorf("build %s: NewEncoder and documents must be given", opt.Dir)
	}
	if opt.Threads <= 0 {
		opt.Threads = runtime.GOMAXPROCS(0)
	}
	if opt.HeldOut != nil {
		opt.ValFraction = 0
	}
	return opt.make("build", func(b *builder) error {
		err := encodeAll(ctx, opt, docs, b.add, b.progress)
		if err == nil && opt.HeldOut != nil {
			err = encodeAll(ctx, opt, opt.HeldOut, b.val.add, b.progress)
		}
		return err
	})
}

// make writes the dataset of the documents that fill adds to a builder.
func (o BuildOptions) make(doing string, fill func(*builder) error) (m Manifest, err error) {
	if o.ShardTokens == 0 {
		o.ShardTokens = 1 << 27
	}
	if err := o.check(); err != nil {
		return m, fmt.Errorf("%s %s: %w", doing, o.Dir, err)
	}
	_, missing := os.Stat(o.Dir)
	release, err := fileio.Claim(o.Dir)
	if err != nil {
		return m, err
	}
	defer release()
	if err := prepare(o.Dir, o.Replace); err != nil {
		return m, err
	}
	b := newBuilder(o)
	if err = fill(b); err == nil {
		m, err = b.finish()
	}
	if err != nil {
		b.abort()
		err = errors.Join(err, settle(o.Dir))
		if errors.Is(missing, fs.ErrNotExist) {
			os.Remove(o.Dir) // if it is empty
		}
		return Manifest{}, fmt.Errorf("%s %s: %w", doing, o.Dir, err)
	}
	_ = settle(o.Dir) // what it cannot remove now, the next build does
	return m, nil
}

// progress reports the progress of the build.
func (b *builder) progress() {
	if b.opt.Progress != nil {
		b.opt.Progress(b.train.info.Counts, b.val.info.Counts)
	}
}

// finish completes the shards, then the other files, and finally the manifest.
func (b *builder) finish() (Manifest, error) {
	if err := b.finishSplits(); err != nil {
		return Manifest{}, err
	}
	if b.opt.TokenizerFile != nil {
		if err := b.write(tokenizerName, b.opt.TokenizerFile); err != nil {
			return Manifest{}, err
		}
	}
	if b.opt.TokenizerConfig != nil {
		if err := b.write(tokenizerConfigName, bytes.NewReader(b.opt.TokenizerConfig)); err != nil {
			return Manifest{}, err
		}
	}
	tok := b.opt.Tokenizer
	m := Manifest{
		Format: manifestFormat, Version: manifestVersion,
		Tokenizer: TokenizerInfo{
			Path: tok.Path, SHA256: hex.EncodeToString(tok.SHA256[:]), VocabSize: tok.Vocab, EOT: tok.EOT,
		},
		ValFraction: b.opt.ValFraction, Train: b.train.info, Val: b.val.info,
	}
	if b.opt.Lost != nil {
		m.Lost = b.opt.Lost()
	}
	return m, m.write(b.opt.Dir)
}

// write writes a file beside the manifest.
func (b *builder) write(name string, from io.WriterTo) error {
	path := filepath.Join(b.opt.Dir, name)
	fresh := !exists(path)
	err := writeFile(path, from)
	if err == nil && fresh {
		b.wrote = append(b.wrote, name)
	}
	return err
}

// ErrExists means that the directory for a new dataset already holds one.
var ErrExists = errors.New("already holds a data set")

// Exists reports whether dir holds a dataset.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, manifestName))
	return err == nil
}

// prepare prepares dir for a build: it sets an earlier dataset aside and removes the shards of an interrupted build.
func prepare(dir string, replace bool) error {
	if err := settle(dir); err != nil {
		return fmt.Errorf("build %s: %s", dir, fileio.Cause(err))
	}
	if _, err := os.Stat(filepath.Join(dir, manifestName)); err == nil {
		if !replace {
			return fmt.Errorf("%s %w\n  choose another directory, or replace it with --replace", dir, ErrExists)
		}
		if err := setAside(dir); err != nil {
			return errors.Join(fmt.Errorf("%s cannot be set aside: %s\n  choose another directory, or remove it",
				dir, fileio.Cause(err)), settle(dir))
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("build %s: %s", dir, fileio.Cause(err))
	}
	shards, err := shardsOf(dir)
	if err != nil {
		return fmt.Errorf("build %s: %s", dir, fileio.Cause(err))
	}
	for _, name := range shards {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o777)
}
