package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"time"
)

// TrainOptions are the options of [Train]. The zero value of each field except VocabSize selects a default.
type TrainOptions struct {
	VocabSize int    // tokens in total: 256 bytes, special tokens, the rest merges
	Pattern   string // llama3 (the default), gpt2, cl100k, qwen2, nanochat, o200k or a regular expression
	// default: <|endoftext|>; they get the last ids, and the first ends a text. Empty but not nil: none
	Special  []string
	Threads  int // default: GOMAXPROCS. The result does not depend on it
	Progress func(Progress)

	// Memory, if not 0, limits the bytes of counting and learning; at least 4 MiB. Current texts, about 3 MiB per
	// thread, and uncollected garbage come on top. Counts that do not fit go to TempDir. If the distinct pretokens
	// are too many to learn from, the rarest are dropped, and the Report says so. If nothing is dropped, the
	// vocabulary is the same as without a limit.
	Memory  int64
	TempDir string // "" selects the system's directory for temporary files
	KeepAll bool   // return an error instead of dropping pretokens
	Report  *TrainReport
}

// OptionError means that [TrainOptions] are invalid for any text.
type OptionError struct{ Err error }

func (e *OptionError) Error() string { return e.Err.Error() }

func (e *OptionError) Unwrap() error { return e.Err }

// check validates the options before any work is done.
func (opt *TrainOptions) check() (pattern, error) {
	p, err := parsePattern(opt.Pattern)
	if err != nil {
		return pattern{}, err
	}
	if least := 256 + len(opt.Special); opt.VocabSize < least || opt.VocabSize > maxVocab {
		return pattern{}, fmt.Errorf("a vocabulary of %d tokens is not possible: it must hold 256 bytes and %d "+
			"special tokens, and at most %d tokens\n"+
			"  try 8192 or 32768", opt.VocabSize, len(opt.Special), maxVocab)
	}
	if opt.Memory != 0 && opt.Memory < minMemory {
		return pattern{}, fmt.Errorf("%d bytes of memory are too few for training\n  try 256 MiB, or at least %d",
			opt.Memory, minMemory)
	}
	_, err = assemble(p, byteVocab(), nil, opt.Special)
	return p, err
}

// Progress is reported by [Train], a few times per second, from the goroutine that called it.
type Progress struct {
	Phase     string // "count", with TrainOptions.Memory "sort", then "merge"
	Documents int64
	Bytes     int64 // of text read
	Words     int   // distinct pretokens; known from phase "merge" on
	Merges    int   // done so far
	Total     int   // merges in total
}

// Train learns a byte-level BPE vocabulary from docs: it counts pretokens, then repeatedly merges the most frequent
// pair of adjacent tokens into a new token. Of pairs with equal counts the one with the smaller ids comes first, with
// byte ids in the order of the byte-level alphabet. The merges are those of the Hugging Face trainer, as long as no
// pretoken is longer than 1,024 bytes (longer ones are counted in pieces). They do not depend on the order of the
// documents or on the number of threads.
//
// Bytes get the ids 0–255 in that order, merges the following ones, special tokens the last. Texts with too few pairs
// for VocabSize give a smaller vocabulary. Memory grows with the number of distinct pretokens, not with the text. A
// document is not used after the next one is requested.
func Train(ctx context.Context, opt TrainOptions, docs iter.Seq2[[]byte, error]) (*Tokenizer, error) {
	if opt.Pattern == "" {
		opt.Pattern = "llama3"
	}
	if opt.Special == nil {
		opt.Special = []string{"<|endoftext|>"}
	}
	if opt.Threads <= 0 {
		opt.Threads = runtime.GOMAXPROCS(0)
	}
	p, err := opt.check()
	if err != nil {
		return nil, &OptionError{err}
	}
	want := opt.VocabSize - 256 - len(opt.Special)
	report := reporter(opt.Progress, Progress{Phase: "count", Total: want})
	if opt.Report == nil {
		opt.Report = &TrainReport{}
	}
	*opt.Report = TrainReport{}
	l, err := opt.learn(ctx, p, want, docs, report)
	if err != nil {
		return nil, err
	}
	return assemble(p, l.vocab, l.merges, opt.Special)
}

// learn counts pretokens and makes want merges.
func (opt *TrainOptions) learn(ctx context.Context, p pattern, want int, docs iter.Seq2[[]byte, error],
	report func(bool, func(*Progress))) (*learner, error) {
	r := opt.Report
	runs := &runFile{dir: opt.TempDir}
	defer runs.Close()
	counts, peak, err := countDocuments(ctx, p, opt.Threads, opt.Memory, runs, docs, report)
	if err != nil {
		return nil, err
	}
	r.Peak = peak
	var sum tally
	see := func(piece []byte, n int64) error { sum.add(piece, n); return ctx.Err() }
	each := func(see func([]byte, int64) error) error { return runs.read(runs.runs, opt.Memory/8, see) }
	if counts != nil {
		each = counts.each
		err = each(see)
	} else {
		report(true, func(p *Progress) { p.Phase = "sort" })
		err = runs.merge(opt.Memory/8, see)
	}
	if err != nil {
		return nil, err
	}
	r.Words, r.Occurrences, r.Bytes, r.Spilled = sum.all.words, sum.all.occurrences, sum.all.bytes, runs.end
	least, memory := 1, opt.Memory
	for {
		if opt.Memory > 0 {
			var ok bool
			if least, ok = sum.keep(least, memory); !ok || least > 1 && opt.KeepAll {
				return nil, sum.tooLittle(opt.Memory, least)
			}
		}
		drop := sum.below(least)
		kept := sum.all.without(drop)
		l, err := newLearner(kept, int64(least), opt.Special, each)
		if err != nil {
			return nil, err
		}
		if l.limit = opt.Memory; l.limit == 0 {
			counts, each = nil, nil // frees the memory: no second try follows
		}
		err = l.learn(ctx, want, report)
		r.Peak = max(r.Peak, l.peak)
		if errors.Is(err, errMemory) { // the text has many more pairs than usual: try again with a quarter less
			memory = min(memory, learnerMemory(kept.words, kept.symbols)) * 3 / 4
			continue
		}
		if err == nil && drop.words > 0 {
			r.Dropped = Dropped{int64(least), drop.words, drop.occurrences, drop.bytes}
		}
		return l, err
	}
}

// assemble creates the tokenizer of a vocabulary numbered in the order of its ids; the special tokens follow it.
func assemble(p pattern, vocab *interner, merges []merge, specialTexts []string) (*Tokenizer, error) {
	ids := make([]uint32, vocab.len())
	for i := range ids {
		ids[i] = uint32(i)
	}
	specials := make([]Special, len(specialTexts))
	for i, text := range specialTexts {
		specials[i] = Special{ID: uint32(len(ids) + i), Text: text}
	}
	t, err := newTokenizer(p, false, vocab, ids, merges, specials, false)
	if err == nil && len(specialTexts) > 0 {
		t.end.token = specialTexts[0]
	}
	return t, err
}

// byteVocab returns the vocabulary before the first merge: the bytes in the order of the byte-level alphabet.
func byteVocab() *interner {
	v := &interner{}
	for _, b := range byteOrder {
		v.add([]byte{b})
	}
	return v
}

// reporter returns a function that updates the progress and reports it, at most ten times per second and always if
// force is set.
func reporter(f func(Progress), p Progress) func(force bool, change func(*Progress)) {
	last := time.Now()
	return func(force bool, change func(*Progress)) {
		change(&p)
		if f == nil {
			return
		}
		if now := time.Now(); force || now.Sub(last) > 100*time.Millisecond {
			last = now
			f(p)
		}
	}
}
