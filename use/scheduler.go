package use

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"anneal/model"
	"anneal/tensor"
	"anneal/train"
)

// A Sequence is a text, as tokens, that a Scheduler continues. If it is longer than the model's context, the model sees
// only its end (model.InSight).
type Sequence struct {
	IDs       []int32 // tokens of the prompt, at least one; the Scheduler appends generated tokens
	MaxTokens int     // the most tokens to generate
	model.Sampling
	IgnoreEnd bool // the token that ends a text does not end it
	OneByOne  bool // do not guess tokens (model.Guesser); this only takes longer
	// Logprobs, unless nil, requests the log-probability of each generated token, and of that number of most likely
	// tokens at its place. Echo requests those of the prompt, too.
	Logprobs *int
	Echo     bool
	// Emit receives each generated token. With Echo and Logprobs it first receives the tokens of the prompt, except
	// the very first, which is not predicted. It returns whether to continue. It must not call the Scheduler. It may be
	// nil, because IDs holds the tokens.
	Emit func(t Token) (more bool)
	Done func() // called once, after the last token; may be nil

	prompt  int
	slot    int
	first   int // index in IDs of the first token that the model sees
	seen    int // tokens in the cache, from there on
	guesser model.Guesser
}

// A Token is a token of a text with the requested log-probabilities.
type Token struct {
	ID      int32
	End     bool // the model ends the text with it
	Logprob float64
	Top     []Likely // the most likely tokens at its place, descending
}

// Likely is a token with its log-probability.
type Likely struct {
	ID      int32
	Logprob float64
}

// A Scheduler continues several sequences at a time, in passes over the tokens of all of them (model.Batcher). A
// sequence joins between two passes and leaves as soon as it is complete. The tokens generated for it do not depend on
// other sequences. Its methods must be called from one goroutine.
type Scheduler struct {
	r        *Trained
	b        *model.Batcher
	running  []*Sequence // in the order in which they came
	slots    []*Sequence // nil where free
	freed    []int       // by slot: a counter value when it was last freed; 0 if it was never used
	ended    int         // that count
	list     []model.Stretch
	parts    []part // of list
	samplers []*model.Sampler
	guesses  bool // tokens are guessed ahead
	closed   bool
}

// A part is a sequence's part of a pass.
type part struct {
	q   *Sequence
	ids []int32 // tokens of the sequence, followed by guessed ones
}

// A Pass counts the tokens of a pass.
type Pass struct {
	Read    int // tokens of prompts that were read
	Made    int // tokens that were made
	Guessed int // tokens that were guessed
	Right   int // guessed tokens that were right
}

// Passes are limited, so that running sequences do not wait long for the prompts of new ones.
const (
	passTokens  = 256 // of a pass
	readTokens  = 64  // tokens of prompts in a pass that also continues sequences
	guessTokens = 4   // tokens of a pass that guesses: kernels take four rows in 1.2 to 1.5 times the time of one
)

// NewScheduler allocates a Scheduler for so many sequences at a time, at least one; Close frees its memory.
func (r *Trained) NewScheduler(sequences int) (*Scheduler, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	if sequences < 1 {
		return nil, fmt.Errorf("a scheduler of %d sequences cannot continue any\n  try 1 or more", sequences)
	}
	b, err := model.NewBatcher(r.Model, r.Policy, r.dev, sequences, max(passTokens, sequences))
	if err != nil {
		return nil, err
	}
	return &Scheduler{
		r: r, b: b, slots: make([]*Sequence, sequences), freed: make([]int, sequences), guesses: r.guesses(),
	}, nil
}

// SchedulerBytes returns the memory that NewScheduler takes, and how much of it is keys and values.
func (r *Trained) SchedulerBytes(sequences int) (all, cache int64) {
	return model.BatcherBytes(r.Model, r.Policy, r.dev, sequences, max(passTokens, sequences))
}

// Close frees the memory of the Scheduler, but not the model's. A second call does nothing.
func (s *Scheduler) Close() {
	if !s.closed {
		s.closed = true
		s.b.Close()
	}
}

// usable returns ErrClosed after Close of the Scheduler or of its model.
func (s *Scheduler) usable() error {
	if s.closed {
		return ErrClosed
	}
	return s.r.usable()
}

// Bytes returns the memory of the Scheduler, and how much of it is keys and values; 0 after Close.
func (s *Scheduler) Bytes() (all, cache int) {
	if s.closed {
		return 0, 0
	}
	return s.b.Bytes()
}

// Running returns the number of sequences that are being continued.
func (s *Scheduler) Running() int { return len(s.running) }

// Free returns how many more sequences can be added.
func (s *Scheduler) Free() int { return len(s.slots) - len(s.running) }

// Add begins a sequence, which the caller must not change until it is complete or dropped. It returns an error if there
// is no room for it (Free), if a field of it is invalid, or after Close.
func (s *Scheduler) Add(q *Sequence) error {
	if err := s.check(q); err != nil {
		return err
	}
	q.prompt, q.slot, q.first, q.seen = len(q.IDs), -1, 0, 0
	best := -1
	view := s.view(q)
	for i, other := range s.slots {
		if other != nil {
			continue
		}
		// the slot's cache may hold the beginning of the sequence; among equally good slots, the one freed longest ago
		// is taken
		if n := s.b.Common(i, view); n > best || n == best && s.freed[i] < s.freed[q.slot] {
			best, q.slot = n, i
		}
	}
	if q.seen = best; q.scores() {
		q.seen = 0
	}
	q.Sampling.Prompt = q.prompt
	s.slots[q.slot] = q
	s.running = append(s.running, q)
	return nil
}

// check returns why a sequence cannot begin.
func (s *Scheduler) check(q *Sequence) error {
	if err := s.usable(); err != nil {
		return err
	}
	vocab := s.r.Model.Config.Vocab
	unknown := slices.IndexFunc(q.IDs, func(id int32) bool { return id < 0 || int(id) >= vocab })
	switch {
	case slices.Contains(s.running, q):
		return errors.New("the sequence is already being continued\n  add each sequence once")
	case s.Free() == 0:
		return fmt.Errorf("the scheduler has no room: it already continues %d sequences\n"+
			"  call Step until Free is above 0", len(s.slots))
	case len(q.IDs) == 0:
		return ErrNoText
	case unknown >= 0:
		return fmt.Errorf("token %d of the sequence is %d\n  the model's tokens are 0 to %d",
			unknown, q.IDs[unknown], vocab-1)
	case q.MaxTokens < 0:
		return fmt.Errorf("max tokens: %d is negative\n  try 0 or more", q.MaxTokens)
	case q.Logprobs != nil && *q.Logprobs < 0:
		return fmt.Errorf("logprobs: %d is negative\n  try 0 for those of the sequence's own tokens", *q.Logprobs)
	}
	return q.Validate()
}

// scores reports whether the log-probabilities of the prompt are requested.
func (q *Sequence) scores() bool { return q.Echo && q.Logprobs != nil }

// view returns the tokens of a sequence that the model sees. If their beginning moves, the cache must be rebuilt.
func (s *Scheduler) view(q *Sequence) []int32 {
	view := model.InSight(q.IDs, s.r.Context())
	if first := len(q.IDs) - len(view); first != q.first {
		q.first, q.seen = first, 0
	}
	return view
}

// Drop ends a sequence that is no longer needed; its Done is not called.
func (s *Scheduler) Drop(q *Sequence) {
	if i := slices.Index(s.running, q); i >= 0 {
		s.running = slices.Delete(s.running, i, i+1)
		s.slots[q.slot] = nil
		s.ended++
		s.freed[q.slot] = s.ended
	}
}

// Step runs one pass and emits its tokens.
func (s *Scheduler) Step() (did Pass, err error) {
	if err := s.usable(); err != nil {
		return did, err
	}
	if s.plan(); len(s.list) == 0 {
		return did, nil
	}
	logits := s.b.Run(s.list)
	if err := train.Wait(s.r.dev); err != nil {
		return did, err
	}
	tokens := s.pick(logits)
	for i, x := range s.parts {
		q, n := x.q, len(s.list[i].IDs)-s.list[i].First
		guessed := len(x.ids) - len(q.IDs)
		did.Read += max(min(q.first+q.seen+n, q.prompt)-q.first-q.seen, 0)
		q.seen += n - guessed
		var mine []Token
		mine, tokens = tokens[:s.list[i].Logits], tokens[s.list[i].Logits:]
		made := s.hand(x, mine, q.first+len(s.list[i].IDs)-len(mine)+1)
		did.Made += made
		if guessed > 0 {
			right := max(made-1, 0)
			q.guesser.Right(right)
			q.seen += right
			did.Guessed, did.Right = did.Guessed+guessed, did.Right+right
		}
	}
	return did, nil
}

// plan makes the list of a pass: the tokens of all running sequences, and as many tokens of prompts as there is room
// for, in the order of arrival.
func (s *Scheduler) plan() {
	s.list, s.parts = s.list[:0], s.parts[:0]
	room, continued := s.b.Tokens(), 0
	for _, q := range s.running {
		if len(s.view(q))-q.seen == 1 {
			continued++
		}
	}
	for _, q := range s.running {
		if view := s.view(q); len(view)-q.seen == 1 {
			ids := s.guess(q, len(view), guessTokens/continued-1)
			n := 1 + len(ids) - len(q.IDs)
			s.add(part{q, ids}, ids[q.first:], n)
			room -= n
		}
	}
	if continued > 0 {
		room = min(room, readTokens)
	}
	for _, q := range s.running {
		view := s.view(q)
		if n := min(len(view)-q.seen, room); len(view)-q.seen > 1 && n > 0 {
			s.add(part{q, q.IDs}, view[:q.seen+n], n)
			room -= n
		}
	}
}

// guess returns the tokens of a sequence followed by up to most guessed ones. The model sees the last seen tokens of
// the sequence; guesses must not move the beginning of what it sees.
func (s *Scheduler) guess(q *Sequence, seen, most int) []int32 {
	most = min(most, q.prompt+q.MaxTokens-len(q.IDs)-1, s.r.Context()-seen)
	if q.OneByOne || !s.guesses || most < 1 {
		return q.IDs
	}
	return q.guesser.Append(q.IDs, s.b.Room(q.slot, seen, most))
}

// add adds the last n of some tokens of a sequence to the pass. Logits are needed for the last token of the sequence
// and for guessed tokens; with log-probabilities of the prompt, for all tokens.
func (s *Scheduler) add(x part, ids []int32, n int) {
	q, logits := x.q, 0
	switch {
	case q.scores() && len(q.IDs) == q.prompt:
		logits = n
	case q.first+len(ids) >= len(q.IDs):
		logits = q.first + len(ids) - len(q.IDs) + 1
	}
	s.list = append(s.list, model.Stretch{Slot: q.slot, IDs: ids, First: q.seen, Logits: logits})
	s.parts = append(s.parts, x)
}

// pick draws or scores the token after each row of logits, on several goroutines, because rows are independent.
func (s *Scheduler) pick(logits *tensor.Tensor) []Token {
	if logits == nil {
		return nil
	}
	tokens := make([]Token, logits.Rows())
	jobs := make(chan func(*model.Sampler), len(tokens))
	row := 0
	for i, x := range s.parts {
		q, n := x.q, s.list[i].Logits
		for k := range n {
			at := q.first + len(s.list[i].IDs) - n + k + 1 // position of the token that follows
			z, t := logits.Slice(row, row+1), &tokens[row]
			jobs <- func(sampler *model.Sampler) {
				if at < len(q.IDs) {
					t.ID = q.IDs[at]
				} else {
					t.ID = sampler.Next(&z, x.ids[:at], q.Sampling)
				}
				if q.Logprobs != nil {
					score(t, &z, *q.Logprobs)
				}
			}
			row++
		}
	}
	close(jobs)
	var wait sync.WaitGroup
	for i := range min(s.r.dev.Threads(), len(tokens)) {
		if i == len(s.samplers) {
			s.samplers = append(s.samplers, new(model.Sampler))
		}
		sampler := s.samplers[i] // the list grows while others already draw
		wait.Go(func() {
			for job := range jobs {
				job(sampler)
			}
		})
	}
	wait.Wait()
	return tokens
}

// score writes the log-probability of a token, and of the top most likely ones, by its logits z [1, V].
func score(t *Token, z *tensor.Tensor, top int) {
	logZ := model.LogSumExp(z)
	t.Logprob = z.Float64(int(t.ID)) - logZ
	descending := func(a, b Likely) int {
		return cmp.Or(cmp.Compare(b.Logprob, a.Logprob), cmp.Compare(a.ID, b.ID))
	}
	for i := range z.Len() {
		x := Likely{int32(i), z.Float64(i) - logZ}
		if len(t.Top) == top && (top == 0 || x.Logprob <= t.Top[top-1].Logprob) {
			continue
		}
		at, _ := slices.BinarySearchFunc(t.Top, x, descending)
		if t.Top = slices.Insert(t.Top, at, x); len(t.Top) > top {
			t.Top = t.Top[:top]
		}
	}
}

// hand emits the tokens of a sequence that a pass made or scored; the first is at position at. Tokens after a wrong
// guess are discarded. It returns how many were made.
func (s *Scheduler) hand(x part, tokens []Token, at int) (made int) {
	q := x.q
	last := at+len(tokens) > len(q.IDs)
	for i, t := range tokens {
		right := at+i < len(x.ids) && x.ids[at+i] == t.ID // before it is added: the two may share memory
		if at+i == len(q.IDs) {
			if len(q.IDs)-q.prompt >= q.MaxTokens {
				break
			}
			q.IDs = append(q.IDs, t.ID)
			t.End = s.r.ends(t.ID) && !q.IgnoreEnd
			made++
		}
		if q.Emit != nil && !q.Emit(t) || t.End {
			s.finish(q)
			return made
		}
		if !right {
			break
		}
	}
	if last && len(q.IDs)-q.prompt >= q.MaxTokens {
		s.finish(q)
	}
	return made
}

func (s *Scheduler) finish(q *Sequence) {
	s.Drop(q)
	if q.Done != nil {
		q.Done()
	}
}
