package dataset

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"anneal/internal/fileio"
)

// builder distributes documents, in order, to the two splits.
//
// Until both splits have a document, it holds back the best candidate for the other split: the document whose hash is
// nearest to the threshold. That takes the memory of one document, and the outcome depends only on the documents.
type builder struct {
	opt        BuildOptions
	train, val splitWriter
	threshold  uint64 // documents with a smaller hash go to validation

	both   bool // both splits have a document, or only one is requested
	held   document
	copies int // number of copies of held; 0 if nothing is held

	wrote []string // files beside the manifest
}

func newBuilder(opt BuildOptions) *builder {
	b := &builder{opt: opt, both: opt.ValFraction == 0 || opt.ValFraction == 1}
	if opt.ValFraction < 1 { // 1 is above what a uint64 holds
		b.threshold = uint64(opt.ValFraction * math.MaxUint64)
	}
	b.train = splitWriter{opt: &b.opt, name: "train"}
	b.val = splitWriter{opt: &b.opt, name: "val"}
	return b
}

func (b *builder) side(d document) *splitWriter {
	if d.hash < b.threshold || b.opt.ValFraction == 1 {
		return &b.val
	}
	return &b.train
}

// add adds the next document.
func (b *builder) add(d document) error {
	to := b.side(d)
	switch {
	case b.both:
		return to.add(d)
	case b.copies == 0:
		b.hold(d)
		return nil
	case d.hash == b.held.hash:
		b.copies++
		return nil
	case to != b.side(b.held):
		b.both = true
		if err := b.release(b.side(b.held)); err != nil {
			return err
		}
		return to.add(d)
	case (d.hash < b.held.hash) == (to == &b.train): // nearer to the threshold
		if err := b.release(to); err != nil {
			return err
		}
		b.hold(d)
		return nil
	default:
		return to.add(d)
	}
}

func (b *builder) hold(d document) {
	b.held, b.copies = document{append(b.held.tokens[:0], d.tokens...), d.textBytes, d.hash, d.prompt}, 1
}

// release writes the held document to a split.
func (b *builder) release(to *splitWriter) error {
	for ; b.copies > 0; b.copies-- {
		if err := to.add(b.held); err != nil {
			return err
		}
	}
	return nil
}

// finishSplits completes both splits.
func (b *builder) finishSplits() error {
	to := &b.train // a single document goes to training
	if b.train.info.Documents > 0 {
		to = &b.val
	}
	if err := b.release(to); err != nil {
		return err
	}
	counts := b.train.info.Counts
	if counts.Documents == 0 {
		counts = b.val.info.Counts // all are held out
	}
	if counts.Documents == 0 {
		return errors.New("no documents")
	}
	if b.opt.PromptEnd != "" && counts.PromptTokens == 0 {
		return fmt.Errorf("no training document contains %q, which marks the end of the prompt\n  try --prompt-end "+
			"with a text exactly as it is in the documents, including quotes and line breaks", b.opt.PromptEnd)
	}
	if err := b.train.finish(); err != nil {
		return err
	}
	return b.val.finish()
}

// abort removes the files written.
func (b *builder) abort() {
	b.train.abort()
	b.val.abort()
	for _, name := range b.wrote {
		os.Remove(filepath.Join(b.opt.Dir, name))
	}
}

// splitWriter writes the shards of one split.
type splitWriter struct {
	opt   *BuildOptions
	name  string
	shard *shardWriter // nil between shards
	info  SplitInfo
}

func (w *splitWriter) add(d document) error {
	n := uint64(len(d.tokens)) + 1
	if w.shard != nil && w.shard.h.tokens+n > w.opt.ShardTokens {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if w.shard == nil {
		if err := w.create(); err != nil {
			return err
		}
	}
	w.info.add(Counts{Documents: 1, Tokens: n, TextBytes: uint64(d.textBytes), PromptTokens: uint64(d.prompt)})
	return w.shard.add(d)
}

func (w *splitWriter) create() (err error) {
	dir := filepath.Join(w.opt.Dir, w.name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	w.shard, err = createShard(filepath.Join(dir, fmt.Sprintf("%05d.tokens", len(w.info.Shards))), w.opt.Tokenizer,
		w.opt.PromptEnd != "")
	return err
}

// finish completes the current shard, if there is one.
func (w *splitWriter) finish() error {
	if w.shard == nil {
		return nil
	}
	info, err := w.shard.finish()
	w.shard = nil
	if err != nil {
		return err
	}
	fileio.SyncDir(filepath.Join(w.opt.Dir, w.name))
	w.info.Shards = append(w.info.Shards, info)
	return nil
}

func (w *splitWriter) abort() {
	if w.shard != nil {
		w.shard.close()
		w.shard = nil
	}
	for _, s := range w.info.Shards {
		os.Remove(filepath.Join(w.opt.Dir, filepath.FromSlash(s.Path)))
	}
	os.Remove(filepath.Join(w.opt.Dir, w.name)) // if it is empty
}
