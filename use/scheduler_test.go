package use

import (
	"slices"
	"strings"
	"testing"

	"anneal/model"

	"pgregory.net/rapid"
)

func TestASchedulerNeedsASequence(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, -1} {
		if _, err := r.NewScheduler(n); err == nil || !strings.Contains(err.Error(), "try 1 or more") {
			t.Errorf("%d sequences: %v", n, err)
		}
	}
}

// Whenever sequences come and leave, each has the tokens and log-probabilities that it has alone without guesses: also
// those that outgrow the context.
func TestSequencesDoNotChangeEachOther(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	// result continues a sequence alone.
	result := func(q Sequence) (tokens []Token) {
		s, err := r.NewScheduler(1)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		q.Emit = func(t Token) bool { tokens = append(tokens, t); return true }
		q.Done, q.OneByOne = func() {}, true
		if err := s.Add(&q); err != nil {
			t.Fatal(err)
		}
		for s.Running() > 0 {
			s.Step()
		}
		return tokens
	}
	rapid.Check(t, func(t *rapid.T) {
		s, err := r.NewScheduler(rapid.IntRange(1, 4).Draw(t, "slots"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.guesses = true
		var all []*Sequence
		got := map[*Sequence][]Token{}
		var want []Sequence
		dropped := map[*Sequence]bool{}
		left := rapid.IntRange(1, 6).Draw(t, "sequences")
		for left > 0 || s.Running() > 0 {
			if left > 0 && s.Free() > 0 && rapid.Bool().Draw(t, "add") {
				q := drawRequest(t, r)
				want, left = append(want, *q), left-1
				q.IDs = slices.Clone(q.IDs)
				q.Emit = func(t Token) bool { got[q] = append(got[q], t); return true }
				q.Done = func() {}
				all = append(all, q)
				if err := s.Add(q); err != nil {
					t.Fatal(err)
				}
			}
			if len(all) > 0 && rapid.IntRange(0, 20).Draw(t, "drop") == 0 {
				q := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
				s.Drop(q)
				dropped[q] = true
			}
			if _, err := s.Step(); err != nil {
				t.Fatal(err)
			}
		}
		for i, q := range all {
			alone := result(want[i])
			if dropped[q] {
				alone = alone[:min(len(got[q]), len(alone))]
			}
			if !slices.EqualFunc(got[q], alone, sameToken) {
				t.Fatalf("sequence %d of %d: %v, alone %v", i, len(all), got[q], alone)
			}
		}
	})
}

// A sequence that no cache helps takes the slot that was freed longest ago, so that the caches of the last ones stay.
func TestASequenceTakesTheSlotFreedLongestAgo(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.NewScheduler(3)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all, cache := s.Bytes()
	if planned, kv := r.SchedulerBytes(3); planned != int64(all) || kv != int64(cache) {
		t.Errorf("%d bytes are planned, %d of them keys and values; it takes %d and %d", planned, kv, all, cache)
	}
	for i, want := range []int{0, 1, 2, 0, 1} {
		q := &Sequence{IDs: []int32{int32(i), 9}, Emit: func(Token) bool { return true }, Done: func() {}}
		if err := s.Add(q); err != nil || q.slot != want {
			t.Errorf("sequence %d is in slot %d, want %d: %v", i, q.slot, want, err)
		}
		if _, err := s.Step(); err != nil || s.Running() > 0 {
			t.Fatalf("%d run after a pass, %v", s.Running(), err)
		}
	}
}

func sameToken(a, b Token) bool {
	return a.ID == b.ID && a.End == b.End && a.Logprob == b.Logprob && slices.Equal(a.Top, b.Top)
}

// drawRequest draws a sequence. Some begin alike, and some outgrow the context of 32 tokens.
func drawRequest(t *rapid.T, r *Trained) *Sequence {
	q := &Sequence{
		MaxTokens: rapid.IntRange(0, 40).Draw(t, "max"), IgnoreEnd: rapid.Bool().Draw(t, "ignore end"),
		Sampling: model.Sampling{Temperature: rapid.SampledFrom([]float64{0, 1}).Draw(t, "temperature"), Seed: 3},
	}
	for range rapid.IntRange(1, 30).Draw(t, "prompt") {
		q.IDs = append(q.IDs, int32(rapid.IntRange(0, 3).Draw(t, "id")))
	}
	if rapid.Bool().Draw(t, "logprobs") {
		q.Logprobs, q.Echo = new(int), rapid.Bool().Draw(t, "echo")
		*q.Logprobs = rapid.IntRange(0, 3).Draw(t, "top")
	}
	return q
}

// A sequence that could not be continued is refused, and changes nothing for the next one.
func TestAddRefusesWhatCannotBeContinued(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.NewScheduler(1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for want, q := range map[string]*Sequence{
		"no text to continue":    {MaxTokens: 3},
		"tokens are 0 to 319":    {IDs: []int32{1, 320}},
		"token 0 of":             {IDs: []int32{-1}},
		"max tokens":             {IDs: []int32{1}, MaxTokens: -1},
		"logprobs":               {IDs: []int32{1}, Logprobs: new(-1)},
		"temperature -1 is not ": {IDs: []int32{1}, Sampling: model.Sampling{Temperature: -1}},
	} {
		wantError(t, want, s.Add(q), want)
	}
	q := &Sequence{IDs: make([]int32, 2*r.Context()), MaxTokens: 3, IgnoreEnd: true} // also without Emit and Done
	if err := s.Add(q); err != nil {
		t.Fatal(err)
	}
	wantError(t, "twice", s.Add(q), "add each sequence once")
	wantError(t, "full", s.Add(&Sequence{IDs: []int32{1}}), "until Free is above 0")
	for s.Running() > 0 {
		if _, err := s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(q.IDs) - 2*r.Context(); n != 3 {
		t.Errorf("%d tokens were made", n)
	}
}

func wantError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}
