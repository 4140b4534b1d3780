package dedup

import (
	"fmt"
	"slices"
)

// Settings are the options of a deduplication as people give them, on a command line or in a pipeline.
type Settings struct {
	Exact      []string // units; none, alone, for no unit
	MinWords   int
	Near       bool
	Words      int
	Bands      int
	Rows       int
	Verify     float64
	NGrams     bool
	NGramWords int
	NGramShare float64
	NGramBytes int64
}

// defaults are what a command and a pipeline take for options that are not given.
var defaults = Settings{
	Exact: []string{Document.String()}, MinWords: 3, Near: true, Words: 5, Bands: 14, Rows: 8, NGramWords: 13,
	NGramShare: 0.8, NGramBytes: 256 << 20,
}

const mostSetting = 1 << 20

// Options returns the options for Run. It refuses settings that contradict each other or have no effect. In its errors
// say writes an option with a value, which may be nil, as the user would.
func (s Settings) Options(say func(option string, value any) string) (o Options, err error) {
	if err := s.check(say); err != nil {
		return o, err
	}
	if err := s.checkIdle(say); err != nil {
		return o, err
	}
	o = Options{MinWords: s.MinWords, Verify: s.Verify}
	for u := Document; u <= Line; u++ {
		if slices.Contains(s.Exact, u.String()) {
			o.Units = append(o.Units, u)
		}
	}
	if s.NGrams {
		o.NGrams = &Bloom{Words: s.NGramWords, Threshold: s.NGramShare, Memory: s.NGramBytes}
	}
	if s.Near {
		o.Near = &MinHash{Words: s.Words, Bands: s.Bands, Rows: s.Rows}
		err = o.Near.check()
	}
	return o, err
}

func (s Settings) check(say func(option string, value any) string) error {
	for _, n := range []struct {
		option string
		value  int
	}{
		{"min_words", s.MinWords}, {"words", s.Words}, {"bands", s.Bands}, {"rows", s.Rows},
		{"ngram_words", s.NGramWords},
	} {
		if n.value < 1 || n.value > mostSetting {
			return fmt.Errorf("%s is %d\n  try a whole number from 1 to %d", say(n.option, nil), n.value, mostSetting)
		}
	}
	none := slices.Contains(s.Exact, "none")
	switch {
	case !(s.Verify >= 0 && s.Verify <= 1):
		return fmt.Errorf("%s is not a similarity from 0 to 1\n  try %s", say("verify", s.Verify), say("verify", 0.7))
	case !(s.NGramShare > 0 && s.NGramShare <= 1):
		return fmt.Errorf("%s is not a share from 0 to 1\n  try %s", say("ngram_share", s.NGramShare),
			say("ngram_share", defaults.NGramShare))
	case none && len(s.Exact) > 1:
		return fmt.Errorf("%s cannot combine none with other units\n  try %s, or leave none out", say("exact", nil),
			say("exact", []string{"none"}))
	case (none || len(s.Exact) == 0) && !s.Near && !s.NGrams:
		return fmt.Errorf("nothing to look for: %s, %s and no %s\n  try %s", say("exact", []string{"none"}),
			say("near", false), say("ngrams", true), say("exact", defaults.Exact))
	}
	return nil
}

// checkIdle refuses settings that belong to a comparison that is not made.
func (s Settings) checkIdle(say func(option string, value any) string) error {
	near, ngrams := "with "+say("near", false), "without "+say("ngrams", true)
	parts := slices.Contains(s.Exact, Paragraph.String()) || slices.Contains(s.Exact, Line.String())
	for _, x := range []struct {
		option          string
		isDefault, used bool
		why, try        string
	}{
		{"verify", s.Verify == defaults.Verify, s.Near, near, "one of them"},
		{"words", s.Words == defaults.Words, s.Near, near, "one of them"},
		{"bands", s.Bands == defaults.Bands, s.Near, near, "one of them"},
		{"rows", s.Rows == defaults.Rows, s.Near, near, "one of them"},
		{"ngram_words", s.NGramWords == defaults.NGramWords, s.NGrams, ngrams, "both"},
		{"ngram_share", s.NGramShare == defaults.NGramShare, s.NGrams, ngrams, "both"},
		{"ngram_mib", s.NGramBytes == defaults.NGramBytes, s.NGrams, ngrams, "both"},
		{"min_words", s.MinWords == defaults.MinWords, parts, "without paragraphs or lines",
			say("exact", []string{Document.String(), Paragraph.String()}) + " with it"},
	} {
		if !x.isDefault && !x.used {
			return fmt.Errorf("%s has no effect %s\n  try %s", say(x.option, nil), x.why, x.try)
		}
	}
	return nil
}
