package curate

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// The rules once more, as their papers and datatrove's code say them: by strings, maps and regular expressions.

type referenceToken struct {
	text  string
	word  bool
	alpha bool
}

// referenceTokens is the definition of words.go, rune by rune.
func referenceTokens(text string) (tokens []referenceToken) {
	var parts []string
	for i, r := range text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError && text[i] != 0xef {
			size = 1
		}
		parts = append(parts, text[i:i+size])
	}
	kind := func(i int) uint8 {
		if i >= len(parts) {
			return space
		}
		k := class[parts[i][0]]
		if k == wide {
			k = slowClass([]rune(parts[i])[0])
		}
		return k
	}
	for i := 0; i < len(parts); {
		start, tok := i, referenceToken{}
		switch {
		case kind(i) == space:
			i++
			continue
		case kind(i)&wordy != 0:
			tok.word = true
			for kind(i)&wordy != 0 || kind(i)&joiner != 0 && kind(i+1)&wordy != 0 {
				tok.alpha = tok.alpha || kind(i)&letter != 0
				i++
			}
		default:
			for kind(i)&symbol != 0 {
				i++
			}
		}
		tok.text = strings.Join(parts[start:i], "")
		tokens = append(tokens, tok)
	}
	return tokens
}

func referenceQuality(text string, s map[string]float64) {
	tokens := referenceTokens(text)
	words, chars, alpha, stop := 0, 0, 0, map[string]bool{}
	for _, tok := range tokens {
		if tok.word {
			words++
			chars += utf8.RuneCountInString(tok.text)
		}
		if tok.alpha {
			alpha++
		}
		for _, w := range stopWords {
			if tok.text == w {
				stop[w] = true
			}
		}
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	bullets, ellipses := 0, 0
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "•") || strings.HasPrefix(l, "-") {
			bullets++
		}
		if strings.HasSuffix(l, "...") || strings.HasSuffix(l, "…") {
			ellipses++
		}
	}
	s["gopher_quality.words"] = float64(words)
	s["gopher_quality.word_length"] = ratio(chars, words)
	s["gopher_quality.hash_ratio"] = ratio(strings.Count(text, "#"), len(tokens))
	s["gopher_quality.ellipsis_ratio"] = ratio(strings.Count(text, "...")+strings.Count(text, "…"), len(tokens))
	s["gopher_quality.bullet_lines"] = ratio(bullets, len(lines))
	s["gopher_quality.ellipsis_lines"] = ratio(ellipses, len(lines))
	s["gopher_quality.alpha_words"] = ratio(alpha, len(tokens))
	s["gopher_quality.stop_words"] = float64(len(stop))
}

var (
	referenceParagraphs = regexp.MustCompile(`\n{2,}`)
	referenceLines      = regexp.MustCompile(`\n+`)
)

func referenceRepetition(text string, s map[string]float64) {
	total := utf8.RuneCountInString(text)
	duplicates := func(parts []string) (n, chars int) {
		seen := map[string]bool{}
		for _, p := range parts {
			if seen[p] {
				n++
				chars += utf8.RuneCountInString(p)
			}
			seen[p] = true
		}
		return n, chars
	}
	parts := referenceParagraphs.Split(strings.TrimSpace(text), -1)
	n, chars := duplicates(parts)
	s["gopher_repetition.duplicate_paragraphs"],
		s["gopher_repetition.duplicate_paragraph_chars"] = ratio(n, len(parts)), ratio(chars, total)
	parts = referenceLines.Split(text, -1)
	n, chars = duplicates(parts)
	s["gopher_repetition.duplicate_lines"], s["gopher_repetition.duplicate_line_chars"] = ratio(n, len(parts)),
		ratio(chars, total)

	var tokens []string
	for _, tok := range referenceTokens(text) {
		tokens = append(tokens, tok.text)
	}
	gram := func(i, n int) string { return strings.Join(tokens[i:i+n], " ") }
	for n := 2; n <= 4; n++ {
		counts, best := map[string]int{}, ""
		for i := 0; i+n <= len(tokens); i++ {
			counts[gram(i, n)]++
		}
		for i := 0; i+n <= len(tokens); i++ {
			if g := gram(i, n); counts[g] > counts[best] {
				best = g
			}
		}
		s["gopher_repetition.top_"+string(rune('0'+n))+"_gram"] = ratio(utf8.RuneCountInString(best)*counts[best],
			total)
	}
	for n := 5; n <= 10; n++ {
		seen, chars := map[string]bool{}, 0
		for i := 0; i+n <= len(tokens); {
			if g := gram(i, n); seen[g] {
				chars += utf8.RuneCountInString(g) - (n - 1)
				i += n
			} else {
				seen[g] = true
				i++
			}
		}
		s["gopher_repetition."+[...]string{5: "duplicate_5_grams", 6: "duplicate_6_grams", 7: "duplicate_7_grams",
			8: "duplicate_8_grams", 9: "duplicate_9_grams", 10: "duplicate_10_grams"}[n]] = ratio(chars, total)
	}
}

func referenceFineWeb(text string, s map[string]float64) {
	filled, ended, short, dup, seen := 0, 0, 0, 0, map[string]bool{}
	for _, l := range strings.Split(text, "\n") {
		if strings.TrimSpace(l) == "" {
			continue
		}
		filled++
		if last, _ := utf8.DecodeLastRuneInString(l); unicode.Is(unicode.STerm, last) || last == '．' {
			ended++
		}
		chars := utf8.RuneCountInString(l)
		if chars <= 30 {
			short++
		}
		if seen[l] {
			dup += chars
		}
		seen[l] = true
	}
	newlines := strings.Count(text, "\n")
	s["fineweb.ended_lines"], s["fineweb.short_lines"] = ratio(ended, filled), ratio(short, filled)
	s["fineweb.duplicate_chars"] = ratio(dup, utf8.RuneCountInString(text)-newlines)
	s["fineweb.newline_ratio"] = ratio(newlines, len(referenceTokens(text)))
}

var (
	referenceCitation = regexp.MustCompile(`\[\d*\]|\[edit\]|\[citation needed\]`)
	referenceSentence = regexp.MustCompile(`[.?!]["')\]]*(?:[\t-\r\x1c-\x1f ]|$)`)
)

func referenceC4(text string, anyEnd bool, s map[string]float64) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	lorem, curly, sentences, kept := 0, 0, 0, []string(nil)
	for _, l := range lines {
		l = strings.TrimSpace(l)
		long := false
		for _, f := range strings.Fields(l) {
			long = long || utf8.RuneCountInString(f) > 1000
		}
		words := len(strings.FieldsFunc(l, func(r rune) bool {
			return r < utf8.RuneSelf && class[r] == space || r >= utf8.RuneSelf && unicode.IsSpace(r)
		}))
		cut := referenceCitation.ReplaceAllString(l, "")
		low := strings.Map(func(r rune) rune {
			if 'A' <= r && r <= 'Z' {
				r |= 0x20
			}
			return r
		}, cut)
		policy := false
		for _, p := range []string{
			"terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies",
		} {
			policy = policy || strings.Contains(low, p)
		}
		switch {
		case long, !anyEnd &&
			(cut == "" || !strings.Contains(`.?!"'`, cut[len(cut)-1:]) || strings.HasSuffix(cut, "...")), words < 3:
			continue
		case strings.Contains(low, "lorem ipsum"):
			lorem++
		case strings.Contains(low, "javascript"):
			continue
		case strings.Contains(low, "{"):
			curly++
		case policy:
			continue
		}
		kept = append(kept, cut)
		ends := referenceSentence.FindAllStringIndex(cut, -1)
		sentences += len(ends)
		if len(ends) == 0 || ends[len(ends)-1][1] < len(cut) || class[cut[len(cut)-1]] == space {
			sentences++
		}
	}
	s["c4.lorem_ipsum"], s["c4.curly_brackets"], s["c4.sentences"] = float64(lorem), float64(curly), float64(sentences)
	s["c4.lines_dropped"] = ratio(len(lines)-len(kept), len(lines))
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

// randomText strings parts together that rules look at, of a small choice at times, so that they repeat.
func randomText(r *rand.Rand) string {
	parts := []string{
		"the", "to", "with", "that", "be", "of", "Have", "longerword", "sevenchars", "more-than-sixteen-characters",
		"x", "é", "日本", "'", "’", "-", " ", "  ", "\n", "\n\n", " ", " ", ".", "...", "…", "#", "_", "9", "\u0301",
		"\u00a0", "• ", "\n- ", "? ", "! ", "\") ", "]", "[1]", "[edit]", "[", "{", "lorem ipsum", "Terms of use",
		"privacy Policy", "cookie policy", "uses cookies", "use of cookies", "te[1]rms of use", "JavaScript",
		"vacuum", "forms", "\t", "\x1c", "8.8.8.8", "\u2003", "\u0085",
		"\r\n", ". ", "one two three. ", "\x00", "𝒳", "The quick brown fox jumps over the lazy dog.\n", "。", "．",
		"\xff", "\xe2\x80", strings.Repeat("w", 70), strings.Repeat("wé", 501),
		strings.Repeat("w", 1000), strings.Repeat("wo. ", 70),
	}
	r.Shuffle(len(parts), func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
	parts = parts[:4+r.IntN(len(parts)-4)]
	var b strings.Builder
	between := []string{"", " ", " "}[r.IntN(3)]
	for range r.IntN(160) {
		b.WriteString(parts[r.IntN(len(parts))] + between)
	}
	return b.String()
}

// The rules measure what their plain definitions measure, one behind the other and over text that others changed.
func TestRulesMatchTheirDefinitions(t *testing.T) {
	texts := []string{
		" a paragraph.\n\na paragraph.\n\nb\n\nb ", // white space around a text is of no paragraph
		strings.Repeat("w", 600) + "\x1c" + strings.Repeat("w", 600) + " is one word.",
	}
	for seed := range 600 {
		texts = append(texts, randomText(rand.New(rand.NewPCG(uint64(seed), 1))))
	}
	files, _ := filepath.Glob(filepath.Join(goroot(t), "src", "strings", "*.go"))
	for _, f := range files {
		source, _ := os.ReadFile(f)
		source = source[:min(len(source), 20_000)]
		texts = append(texts, string(source),
			strings.ReplaceAll(strings.ReplaceAll(string(source), "// ", ""), "\t", ""))
	}
	d := new(Doc) // one for all, as in a pipeline: nothing of the text before may be left
	filters := []*Filter{
		GopherRepetition(), GopherQuality(), FineWeb(), C4(true), FineWeb(), C4(false), GopherQuality(),
		GopherRepetition(), FineWeb(),
	}
	dropped := map[string]bool{}
	for i, text := range texts {
		d.SetText([]byte(text))
		for k, f := range filters {
			d.Signals = d.Signals[:0]
			before, want := string(d.Text), map[string]float64{}
			after := before
			switch f.Name {
			case "gopher_repetition":
				referenceRepetition(before, want)
			case "gopher_quality":
				referenceQuality(before, want)
			case "fineweb":
				referenceFineWeb(before, want)
			case "c4":
				after = referenceC4(before, k == 3, want)
			}
			dropped[f.Apply(d).Rule] = true
			for _, s := range d.Signals {
				if s.Value != want[s.Name] {
					t.Fatalf("text %d, filter %d: %s = %v, want %v: %q", i, k, s.Name, s.Value, want[s.Name], before)
				}
			}
			if string(d.Text) != after {
				t.Fatalf("text %d, filter %d: %q becomes %q, want %q", i, k, before, d.Text, after)
			}
		}
	}
	if len(dropped) < 20 {
		t.Errorf("only the rules %v dropped a text", dropped)
	}
}
