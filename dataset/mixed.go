package dataset

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// Mixed serves the training splits of several datasets as one order of samples, by a Mix. It is a Source. Each of its
// loaders keeps the order of its own rows, epoch after epoch, so the guarantees of a Loader hold for each source:
// every row once in each of its epochs.
type Mixed struct {
	loaders []*Loader
	mix     *mixer
	kind    Packing
	seed    uint64
	skip    SkipList
}

// NewMixed combines the training splits of datasets that share one tokenizer. weigh returns the mix, given the number
// of rows that each has in an epoch.
func NewMixed(sets []*Dataset, kind Packing, context int, seed uint64,
	weigh func(rows []uint64) (Mix, error)) (*Mixed, error) {
	if len(sets) == 0 {
		return nil, errors.New("a mix needs at least one source")
	}
	if err := SameTokenizer(sets); err != nil {
		return nil, err
	}
	l := &Mixed{kind: kind, seed: seed}
	rows := make([]uint64, len(sets))
	for i, d := range sets {
		// mix(0) is 0: the first source is read as it is alone
		one, err := d.PackedLoader(kind, context, seed^mix(uint64(i)))
		if err != nil {
			return nil, err
		}
		l.loaders, rows[i] = append(l.loaders, one), one.windows
	}
	m, err := weigh(rows)
	if err == nil {
		err = m.check(len(sets))
	}
	if err != nil {
		return nil, err
	}
	l.mix = newMixer(m, seed)
	return l, nil
}

// SameTokenizer returns an error that names two tokenizers unless all datasets share one.
func SameTokenizer(sets []*Dataset) error {
	for _, d := range sets[1:] {
		a, b := sets[0].Manifest.Tokenizer, d.Manifest.Tokenizer
		if a.SHA256 != b.SHA256 || a.VocabSize != b.VocabSize || a.EOT != b.EOT {
			return fmt.Errorf("%s was tokenised with %s %s (vocabulary %d, "+
				"EOT %d), but %s with %s %s (vocabulary %d, EOT %d): all sources of a mix must share one tokenizer\n"+
				"  rebuild one of them with `anneal data build --tokenizer %s`",
				sets[0].Dir, a.Path, a.SHA256, a.VocabSize, a.EOT, d.Dir, b.Path, b.SHA256, b.VocabSize, b.EOT, a.Path)
		}
	}
	return nil
}

// Arrange orders the samples of each source; lengths of the order count samples of the whole run, and each source gets
// its share of them.
func (l *Mixed) Arrange(o Order) error {
	run, first, last, since := l.mix.drawn(o.Run), l.mix.drawn(o.First.Samples),
		l.mix.drawn(o.Run-min(o.Last.Samples, o.Run)), l.mix.drawn(o.Last.Since)
	for i, one := range l.loaders {
		o.Run, o.First.Samples, o.Last.Samples, o.Last.Since = run[i], first[i], run[i]-last[i], since[i]
		if err := one.Arrange(o); err != nil {
			return err
		}
	}
	return nil
}

// Skip removes samples from the training order: sample k is then the k-th of the remaining ones.
func (l *Mixed) Skip(list SkipList) { l.skip = list }

// Loaders returns the loaders of the sources, in order.
func (l *Mixed) Loaders() []*Loader { return l.loaders }

// Context returns T.
func (l *Mixed) Context() int { return l.loaders[0].context }

// Vocab returns the number of token ids.
func (l *Mixed) Vocab() int { return l.loaders[0].Vocab() }

// At returns the source of sample k, and the sample's number within the source: an argument of its loader's At.
func (l *Mixed) At(k uint64) (source int, sample uint64) { return l.mix.at(l.skip.At(k)) }

// Drawn returns the number of the first k samples that come from each source, without skipped samples.
func (l *Mixed) Drawn(k uint64) []uint64 {
	counts := l.mix.drawn(l.end(k))
	for _, r := range l.skip.below(k) {
		from := l.mix.drawn(r.From)
		for s, n := range l.mix.drawn(r.To) {
			counts[s] -= n - from[s]
		}
	}
	return counts
}

// end returns the number of samples in the order up to the k-th that is not skipped.
func (l *Mixed) end(k uint64) uint64 {
	if k == 0 {
		return 0
	}
	return l.skip.At(k-1) + 1
}

// Batch fills b with samples first…first+rows−1.
func (l *Mixed) Batch(b *Batch, first uint64, rows int) error {
	if last := l.skip.At(first + uint64(rows)); last > mixSamples {
		return fmt.Errorf("sample %d is beyond the %d samples of a mix\n"+
			"  try a larger model.context, or a shorter data.skip", last, uint64(mixSamples))
	}
	b.Resize(rows, l.Context())
	for r := range rows {
		source, sample := l.At(first + uint64(r))
		if err := l.loaders[source].row(b, r, sample); err != nil {
			return err
		}
	}
	return nil
}

// State returns the state after the given number of samples. It only describes the sources that these can come from:
// while that is only the first, it equals the state of a run on that dataset.
func (l *Mixed) State(samples uint64) State {
	end := l.end(samples)
	used := l.mix.used(end)
	if !slices.Contains(used[1:], true) {
		s := l.loaders[0].State(end) // the loader does not know the skips
		s.Sample, s.Skip = samples, l.skip.String()
		return s
	}
	data, parts, orders, weights := sha256.New(), sha256.New(), sha256.New(), sha256.New()
	l.mix.hash(weights, end)
	drawn, ordered := l.mix.drawn(end), false
	for i, one := range l.loaders {
		if used[i] {
			fmt.Fprintf(data, "%d %s\n", i, one.d.fingerprint)
			fmt.Fprintf(parts, "%d %s\n", i, one.packing)
		}
		if one.order != "" && drawn[i] > one.plain {
			ordered = true
			fmt.Fprintf(orders, "%d %s\n", i, one.order)
		}
	}
	s := State{
		Data: hex.EncodeToString(data.Sum(nil)[:20]), Context: l.Context(), Seed: l.seed, Sample: samples,
		Mix: hex.EncodeToString(weights.Sum(nil)[:6]), Skip: l.skip.String(),
	}
	if l.kind != Concat {
		s.Packing = fmt.Sprintf("%s %x", l.kind, parts.Sum(nil)[:4])
	}
	if ordered {
		s.Order = hex.EncodeToString(orders.Sum(nil)[:4])
	}
	return s
}

// Check returns an error if s was saved with other data, context, seed, packing, weights or skipped samples, with
// which its sample counter has another meaning. Later samples may come from other sources and weights.
func (l *Mixed) Check(s State) error {
	here := l.State(s.Sample)
	switch {
	case here.Mix == "" && s.Mix == "":
		alone := s
		alone.Sample, alone.Skip = l.end(s.Sample), ""
		if err := l.loaders[0].Check(alone); err != nil {
			return err
		}
		return l.skip.check(s)
	case s.Mix == "":
		return fmt.Errorf("the run has read %d samples from one data set, but this config mixes "+
			"sources from the first sample on\n  let data.weights start with that data set alone, such as NAME=1, …, "+
			"and add the others from a later step, or start a new run", s.Sample)
	case here.Mix == "":
		return fmt.Errorf("the run has read %d samples from several sources, but this config reads all of them from "+
			"%s\n  restore data.mix and data.weights, or start a new run", s.Sample, l.loaders[0].d.Dir)
	case s.Data != here.Data:
		return fmt.Errorf("the run has read %d samples from the sources %s, but this config reads them from %s\n"+
			"  restore the data sets of data.mix, their order, and data.weights for the past, or start a new run",
			s.Sample, s.Data, here.Data)
	}
	// before the weights, because natural weights depend on the number of rows
	if err := s.checkRows(here); err != nil {
		return err
	}
	if s.Mix != here.Mix {
		return fmt.Errorf("the run has read %d samples with the weights %s, but this config has the weights %s "+
			"for them\n  only future weights can change: restore the others in data.weights, and train.steps if they "+
			"depend on it, branch at an earlier step, or start a new run", s.Sample, s.Mix, here.Mix)
	}
	if s.Order != here.Order {
		return fmt.Errorf("the run reads its samples in the order %s, but this config gives the order %s\n"+
			"  restore data.order, the scores of the sources, and train.steps (on which percentages in data.order "+
			"depend), or start a new run",
			cmp.Or(s.Order, "random"), cmp.Or(here.Order, "random"))
	}
	return l.skip.check(s)
}
