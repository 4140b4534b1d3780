package tokenizer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// regexpStack limits the memory of one match, in stack slots. No pattern of a published tokenizer comes near it. It
// is not a time limit, because a text must have the same tokens on a slow machine.
const regexpStack = 1 << 22

// maxRegexp is the longest accepted pattern, in bytes.
const maxRegexp = 1 << 14

func compileRegexp(s string) (*regexp2.Regexp, error) {
	if len(s) > maxRegexp {
		return nil, errors.New("longer than 16 KiB")
	}
	if err := checkDialect(s); err != nil {
		return nil, err
	}
	// As for Hugging Face, ^ and $ match at every line.
	re, err := regexp2.Compile(s, regexp2.Multiline, regexp2.OptionMaxBacktrackingStackSize(regexpStack))
	if err != nil {
		return nil, err
	}
	return re, checkRegexp(re, s)
}

var (
	flagM     = regexp.MustCompile(`^\(\?[a-z]*m`)
	countPlus = regexp.MustCompile(`^\{\d+(,\d*)?\}\+`)
)

// checkDialect rejects what regexp2 would silently read differently from the library that Hugging Face uses.
func checkDialect(s string) error {
	class := -1 // start of the current character class, after [ or [^; -1 outside
	for i := 0; i < len(s); i++ {
		switch rest := s[i:]; {
		case rest[0] == '\\':
			i++
		case class >= 0 && rest[0] == '[':
			return fmt.Errorf("%.20q: classes in classes are not supported\n"+
				`  try \[ for the character, \p{L} for [:alpha:], [ab] for [a[b]]`, rest)
		case class >= 0 && strings.HasPrefix(rest, "&&"):
			return fmt.Errorf("%.20q: intersections of classes are not supported\n"+
				`  try \& for the character, (?:(?![b])[a]) for [a&&[^b]]`, rest)
		case class >= 0:
			if rest[0] == ']' && i > class {
				class = -1
			}
		case rest[0] == '[':
			if strings.HasPrefix(rest, "[^") {
				i++
			}
			class = i + 1
		case strings.HasPrefix(rest, "{,"):
			return fmt.Errorf("%.20q: counts without a minimum are not supported\n  try {0,", rest)
		case countPlus.MatchString(rest):
			return fmt.Errorf("%.20q: a + after a count is not supported: to some libraries it means one or more "+
				"such counts, to others that none is given back\n"+
				`  try (?:x{1,3})+ or (?>x{1,3}) for x{1,3}+`, rest)
		case flagM.MatchString(rest):
			return fmt.Errorf("%.20q: the flag m is not supported: libraries disagree on it\n"+
				`  try [\s\S] for any character; ^ and $ match at every line anyway`, rest)
		}
	}
	return nil
}

// probeUnits are repeated, like the characters of the pattern, to detect exponential time.
var probeUnits = []string{"a", "A", "é", "1", " ", "\n", "-", "'", "ab", "a1", "a ", "\x00"}

// checkRegexp rejects patterns such as `(\s+)+x`, whose time doubles with every character of some texts, so that 40
// characters take forever. Patterns of real tokenizers take microseconds here.
func checkRegexp(re *regexp2.Regexp, pattern string) error {
	re.MatchTimeout = time.Second
	defer func() { re.MatchTimeout = regexp2.DefaultMatchTimeout }()
	units, seen := slices.Clone(probeUnits), map[rune]bool{}
	for _, r := range pattern {
		if !seen[r] {
			units, seen[r] = append(units, string(r)), true
		}
	}
	start := time.Now()
	for _, unit := range units {
		text := []rune(strings.Repeat(unit, 40) + "!")
		err := re.FindRunesMatches(text, 0, func(regexp2.MatchView) bool { return true })
		if err == nil && time.Since(start) > 5*time.Second {
			err = errors.New("matching takes too long")
		}
		if err != nil {
			return fmt.Errorf("matching fails on %q: %w", string(text), err)
		}
	}
	return nil
}

// regexpSplitter splits a text at the matches of a regular expression; text between matches is a pretoken as well
// (behaviour "Isolated" of Hugging Face). If a match exceeds the stack limit, the rest of the text is one pretoken.
// It is slow; known patterns use a handSplitter.
type regexpSplitter struct {
	re   *regexp2.Regexp
	ends []int // of all pretokens
	done int
}

func (s *regexpSplitter) reset(text []byte) {
	s.ends, s.done = s.ends[:0], 0
	if len(text) == 0 {
		return
	}
	runes := make([]rune, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		runes = append(runes, r)
		i += n
	}
	rune0, byte0 := 0, 0 // the same position in runes and in text
	cut := func(at int) {
		for ; rune0 < at; rune0++ {
			_, n := utf8.DecodeRune(text[byte0:])
			byte0 += n
		}
		if byte0 > 0 && (len(s.ends) == 0 || s.ends[len(s.ends)-1] != byte0) {
			s.ends = append(s.ends, byte0)
		}
	}
	// An error means that a match exceeded the stack limit; earlier matches remain valid.
	_ = s.re.FindRunesMatches(runes, 0, func(m regexp2.MatchView) bool {
		if at, n, ok := m.GroupRange(0); ok { // n may be 0, which cuts too
			cut(at)
			cut(at + n)
		}
		return true
	})
	cut(len(runes))
}

func (s *regexpSplitter) next(ends []int) int {
	n := copy(ends, s.ends[s.done:])
	s.done += n
	return n
}
