package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A SkipList is the list of samples that training skips: half-open ranges [From, To) of the original order,
// ascending, non-adjacent and non-empty. Skipping batches and continuing from an earlier checkpoint is PaLM's remedy
// for loss spikes (Chowdhery et al. 2022, arXiv 2204.02311, §5.1).
type SkipList []SkipRange

// A SkipRange covers the samples From ≤ k < To.
type SkipRange struct{ From, To uint64 }

// ParseSkips parses the format of String: comma-separated ranges "from:to".
func ParseSkips(text string) (SkipList, error) {
	if text == "" {
		return nil, nil
	}
	var list SkipList
	for _, part := range strings.Split(text, ",") {
		a, b, _ := strings.Cut(part, ":")
		from, err := strconv.ParseUint(strings.TrimSpace(a), 10, 62)
		to, err2 := strconv.ParseUint(strings.TrimSpace(b), 10, 62)
		switch {
		case err != nil || err2 != nil:
			return nil, fmt.Errorf("%q is not a range FROM:TO of samples", part)
		case from >= to:
			return nil, fmt.Errorf("the range %d:%d is empty; TO is exclusive", from, to)
		case len(list) > 0 && from < list[len(list)-1].To:
			return nil, fmt.Errorf("the range %d:%d overlaps %d:%d, or precedes it",
				from, to, list[len(list)-1].From, list[len(list)-1].To)
		}
		if len(list) > 0 && from == list[len(list)-1].To {
			list[len(list)-1].To = to
			continue
		}
		list = append(list, SkipRange{from, to})
	}
	return list, nil
}

// String formats the list as "from:to,from:to".
func (s SkipList) String() string {
	parts := make([]string, len(s))
	for i, r := range s {
		parts[i] = fmt.Sprintf("%d:%d", r.From, r.To)
	}
	return strings.Join(parts, ",")
}

// MarshalText implements encoding.TextMarshaler.
func (s SkipList) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *SkipList) UnmarshalText(text []byte) error {
	list, err := ParseSkips(string(text))
	if err == nil {
		*s = list
	}
	return err
}

// At returns the number of the k-th sample that is not skipped, from 0.
func (s SkipList) At(k uint64) uint64 {
	for _, r := range s {
		if k < r.From {
			break
		}
		k += r.To - r.From
	}
	return k
}

// Without also skips the samples numbered from ≤ k < to among those that are not skipped.
func (s SkipList) Without(from, to uint64) SkipList {
	if from >= to {
		return s
	}
	all := append(slices.Clone(s), SkipRange{s.At(from), s.At(to-1) + 1})
	slices.SortFunc(all, func(a, b SkipRange) int {
		if a.From < b.From {
			return -1
		}
		return 1
	})
	merged := all[:1]
	for _, r := range all[1:] {
		if last := &merged[len(merged)-1]; r.From <= last.To {
			last.To = max(last.To, r.To)
		} else {
			merged = append(merged, r)
		}
	}
	return merged
}

// below returns the part of the list that affects the first k samples.
func (s SkipList) below(k uint64) SkipList {
	if k == 0 {
		return nil
	}
	end := s.At(k-1) + 1
	i := slices.IndexFunc(s, func(r SkipRange) bool { return r.From >= end })
	if i < 0 {
		return s
	}
	return s[:i]
}

// check returns an error unless the list agrees with run's on the samples that the run has read.
func (s SkipList) check(run State) error {
	was, err := ParseSkips(run.Skip)
	if err != nil {
		return fmt.Errorf("the run's list of skipped samples: %w", err)
	}
	if a, b := was.below(run.Sample), s.below(run.Sample); !slices.Equal(a, b) {
		return fmt.Errorf("the run has read %d samples and skipped %q, but this config skips %q\n"+
			"  only future samples can be skipped: restore the list, or go back with `anneal rewind`", run.Sample, a, b)
	}
	return nil
}
