package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Loader serves one split as samples of T+1 consecutive tokens with stride T, or as rows of packed documents. It is a
// Source. Several loaders of one Dataset may be used at the same time.
type Loader struct {
	d       *Dataset
	stream  *split
	context int
	windows uint64
	ended   bool // an EOT follows the last token of the stream
	once    bool // samples from windows on are padding

	shuffled bool
	seed     uint64
	epoch    uint64 // of perm
	perm     permutation
	skip     SkipList
	packed   *packing // nil if rows are windows of the stream
	packing  string   // State.Packing

	arranged []arranged // epochs that Arrange has reordered
	order    string     // State.Order
	plain    uint64     // samples before this one are not affected by Arrange; Skip does not change it

	buf    scratch
	window []uint32 // [T+1]
}

// TrainLoader returns the training split in shuffled order, epoch after epoch without end. An epoch visits each of
// its Windows once; tokens after the last whole window are dropped.
func (d *Dataset) TrainLoader(context int, seed uint64) (*Loader, error) {
	if context < 1 {
		return nil, fmt.Errorf("context is %d tokens, want at least 1", context)
	}
	if d.train.tokens == 0 {
		return nil, d.noTraining()
	}
	if n := d.train.tokens; n <= uint64(context) {
		return nil, fmt.Errorf("the training split of %s has %d tokens, but one sample of context %d takes %d\n"+
			"  try a context of at most %d, or build a larger data set",
			d.Dir, n, context, context+1, max(int64(n)-1, 0))
	}
	l := d.loader(&d.train, context)
	l.windows = (d.train.tokens - 1) / uint64(context)
	l.shuffled, l.seed = true, seed
	l.perm = newPermutation(l.windows, seed, 0)
	return l, nil
}

// PackedLoader returns the training split in shuffled order, like TrainLoader, in rows built by the packing. With
// BestFit and Pad, Windows is the number of rows, and an epoch visits each of them once.
func (d *Dataset) PackedLoader(kind Packing, context int, seed uint64) (*Loader, error) {
	if kind == Concat {
		return d.TrainLoader(context, seed)
	}
	packed, err := d.pack(kind, context)
	if err != nil {
		return nil, err
	}
	return d.packedLoader(&d.train, packed, seed), nil
}

// packedLoader returns a split in rows of a packing, in shuffled order.
func (d *Dataset) packedLoader(stream *split, packed *packing, seed uint64) *Loader {
	l := d.loader(stream, packed.context)
	l.packed, l.windows = packed, packed.rows
	l.packing = fmt.Sprintf("%s %08x", packed.kind, packed.fingerprint())
	l.shuffled, l.seed = true, seed
	l.perm = newPermutation(l.windows, seed, 0)
	return l
}

// pack packs the training split.
func (d *Dataset) pack(kind Packing, context int) (*packing, error) {
	switch {
	case kind != BestFit && kind != Pad:
		return nil, fmt.Errorf("unknown packing %q\n  try %s, %s or %s", kind, Concat, BestFit, Pad)
	case context < 1:
		return nil, fmt.Errorf("context is %d tokens, want at least 1", context)
	}
	packed, err := docSpans(d.train.documents).pack(kind, context)
	if err == nil && packed.rows == 0 {
		err = d.noTraining()
	}
	return packed, err
}

// ValLoader returns the validation split in order, once: together the samples 0…Windows−1 hold every token except the
// first as a target exactly once. The end of the last sample, and all samples from Windows on, are padding with
// target Ignore, so that batches can keep their size.
func (d *Dataset) ValLoader(context int) (*Loader, error) {
	if context < 1 {
		return nil, fmt.Errorf("context is %d tokens, want at least 1", context)
	}
	if d.val.tokens < 2 {
		return nil, fmt.Errorf("%w in %s\n  rebuild it with a validation fraction above 0 and at least two "+
			"different documents", ErrNoValidation, d.Dir)
	}
	l := d.loader(&d.val, context)
	l.once = true
	l.windows = (d.val.tokens - 1 + uint64(context) - 1) / uint64(context)
	return l, nil
}

// ScanLoader returns the training split in order, once, like ValLoader for the validation split. It is used to score
// documents.
func (d *Dataset) ScanLoader(context int) (*Loader, error) {
	if context < 1 {
		return nil, fmt.Errorf("context is %d tokens, want at least 1", context)
	}
	l := d.loader(&d.train, context)
	l.once, l.ended = true, true
	l.windows = (d.train.tokens + uint64(context) - 1) / uint64(context)
	return l, nil
}

// ValRows returns the validation split once, in rows built by the packing: with Concat those of ValLoader, else in
// random order, since the packing sorts rows by length.
func (d *Dataset) ValRows(kind Packing, context int) (*Loader, error) {
	l, err := d.ValLoader(context)
	if err != nil || kind == Concat {
		return l, err
	}
	return d.rowsOnce(&d.val, kind, context)
}

// ScanRows is ValRows for the training split.
func (d *Dataset) ScanRows(kind Packing, context int) (*Loader, error) {
	l, err := d.ScanLoader(context)
	if err != nil || kind == Concat {
		return l, err
	}
	return d.rowsOnce(&d.train, kind, context)
}

func (d *Dataset) rowsOnce(stream *split, kind Packing, context int) (*Loader, error) {
	packed, err := docSpans(stream.documents).pack(kind, context)
	if err != nil {
		return nil, err
	}
	l := d.packedLoader(stream, packed, 0)
	l.once = true
	return l, nil
}

// ErrNoValidation means that a dataset has no validation split.
var ErrNoValidation = errors.New("no validation split")

// ErrNoTraining says that a dataset is held out as a whole.
var ErrNoTraining = errors.New("no training split")

func (d *Dataset) noTraining() error {
	return fmt.Errorf("%w in %s: all of its documents are held out, for `anneal eval`\n"+
		"  rebuild it with --val 0.01 to train on it", ErrNoTraining, d.Dir)
}

func (d *Dataset) loader(stream *split, context int) *Loader {
	return &Loader{d: d, stream: stream, context: context, window: make([]uint32, context+1)}
}

// Skip removes samples from the training order: sample k is then the k-th of the remaining ones.
func (l *Loader) Skip(list SkipList) { l.skip = list }

// Dir is the directory of the dataset.
func (l *Loader) Dir() string { return l.d.Dir }

// EOT is the token that ends a text.
func (l *Loader) EOT() uint32 { return l.d.Manifest.Tokenizer.EOT }

// Context returns T.
func (l *Loader) Context() int { return l.context }

// Vocab returns the number of token ids.
func (l *Loader) Vocab() int { return l.d.Manifest.Tokenizer.VocabSize }

// Windows returns the number of samples in an epoch.
func (l *Loader) Windows() uint64 { return l.windows }

// At returns the window of sample k. Without packing, window w begins at token w·T of the stream.
func (l *Loader) At(sample uint64) (window uint64) {
	if !l.shuffled {
		return sample
	}
	sample = l.skip.At(sample)
	epoch := sample / l.windows
	if rows := l.arrangement(epoch); rows != nil {
		return uint64(rows[sample%l.windows])
	}
	if epoch != l.epoch {
		l.epoch, l.perm = epoch, newPermutation(l.windows, l.seed, epoch)
	}
	return l.perm.at(sample % l.windows)
}

// Batch fills b with samples first…first+rows−1.
func (l *Loader) Batch(b *Batch, first uint64, rows int) error {
	b.Resize(rows, l.context)
	for r := range rows {
		if err := l.row(b, r, first+uint64(r)); err != nil {
			return err
		}
	}
	return nil
}

// row fills row r of b with a sample.
func (l *Loader) row(b *Batch, r int, sample uint64) error {
	if l.once && sample >= l.windows {
		b.Pad(r, 0, l.d.Manifest.Tokenizer.EOT)
		return nil
	}
	w := l.At(sample)
	if l.packed != nil {
		return l.packedRow(b, r, w)
	}
	pos := w * uint64(l.context)
	window := l.window[:min(uint64(l.context)+1, l.stream.tokens-pos)]
	if err := l.stream.read(window, pos, &l.buf); err != nil {
		return err
	}
	if l.ended && len(window) <= l.context {
		window = append(window, l.d.Manifest.Tokenizer.EOT)
	}
	b.setRow(r, window, l.d.Manifest.Tokenizer.EOT)
	l.stream.ignorePrompts(b.Targets[r*l.context:(r+1)*l.context], pos+1)
	return nil
}

// packedRow fills row r of b with the pieces of a row of the packing, and padding after them.
func (l *Loader) packedRow(b *Batch, r int, row uint64) error {
	at, eot := 0, l.d.Manifest.Tokenizer.EOT
	for i := l.packed.first(row); i != noPiece; i = l.packed.after(i) {
		pos, n := l.packed.piece(i)
		window := l.window[:min(uint64(n)+1, l.stream.tokens-pos)]
		if err := l.stream.read(window, pos, &l.buf); err != nil {
			return err
		}
		b.setPiece(r, at, n, window, eot)
		l.stream.ignorePrompts(b.Targets[r*l.context+at:][:n], pos+1)
		at += n
	}
	b.Pad(r, at, eot)
	return nil
}

// State is the position of a run in its data: all that is needed to continue with the next sample. It is under 200
// bytes of JSON, unless many samples are skipped.
type State struct {
	Data    string `json:"data"` // Dataset.Fingerprint
	Context int    `json:"context"`
	Seed    uint64 `json:"seed"`
	Sample  uint64 `json:"sample"`            // samples consumed
	Packing string `json:"packing,omitempty"` // packing, with a checksum of its result; empty for Concat
	// checksum of the order from Arrange; empty while Arrange has had no effect
	Order string `json:"order,omitempty"`
	// hash of the weights of the sources so far; empty if all samples came from the first source
	Mix  string `json:"mix,omitempty"`
	Skip string `json:"skip,omitempty"` // skipped samples, in the format of SkipList
}

// State returns the state after the given number of samples.
func (l *Loader) State(samples uint64) State {
	s := State{
		Data: l.d.fingerprint, Context: l.context, Seed: l.seed, Sample: samples, Packing: l.packing,
		Skip: l.skip.String(),
	}
	if samples > 0 && l.skip.At(samples-1) >= l.plain {
		s.Order = l.order
	}
	return s
}

// ErrOther means that a dataset is not the one that a run was trained on.
var ErrOther = errors.New("the run was trained on other data")

// Check returns an error if s was saved with other data, context, seed, packing, order or skipped samples, with which
// its sample counter has another meaning.
func (l *Loader) Check(s State) error {
	if s.Mix != "" {
		return fmt.Errorf("the run has read %d samples from several sources, but this config has only %s\n"+
			"  restore data.mix and data.weights, or start a new run", s.Sample, l.d.Dir)
	}
	here := l.State(s.Sample)
	if s.Data != here.Data {
		return fmt.Errorf("%w: %s holds %s, not %s\n"+
			"  restore the data set that it was trained on, or start a new run", ErrOther, l.d.Dir, here.Data, s.Data)
	}
	if err := s.checkRows(here); err != nil {
		return err
	}
	if s.Order != here.Order {
		return fmt.Errorf("the run reads its samples in the order %s, but this config gives the order %s\n"+
			"  restore data.order, the scores in %s, and train.steps (on which percentages in data.order depend), "+
			"or start a new run",
			cmp.Or(s.Order, "random"), cmp.Or(here.Order, "random"), filepath.Join(l.d.Dir, scoresDir))
	}
	return l.skip.check(s)
}

// checkRows returns an error if the rows have changed.
func (s State) checkRows(here State) error {
	switch {
	case s.Context != here.Context:
		return fmt.Errorf("the run has read %d samples of context %d, but this config has context %d\n"+
			"  restore the context, or start a new run", s.Sample, s.Context, here.Context)
	case s.Seed != here.Seed:
		return fmt.Errorf("the run shuffles its data with seed %d, but this config has seed %d\n"+
			"  restore the seed, or start a new run", s.Seed, here.Seed)
	case s.Packing != here.Packing:
		return s.otherPacking(here)
	}
	return nil
}

// otherPacking says how the packing of here, a name and a checksum of the rows, differs from that of s.
func (s State) otherPacking(here State) error {
	was, rows, _ := strings.Cut(cmp.Or(s.Packing, string(Concat)), " ")
	now, others, _ := strings.Cut(cmp.Or(here.Packing, string(Concat)), " ")
	if was != now {
		return fmt.Errorf("the run packs documents with %s, but this config with %s\n  restore data.packing, "+
			"or start a new run", was, now)
	}
	return fmt.Errorf("the run packed the documents of its data by %s into rows with the checksum %s, but they now "+
		"have %s\n  use the version of anneal that made the run, or start a new run", was, rows, others)
}
