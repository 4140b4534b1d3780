package tokenizer

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// split returns the pretokens of text.
func split(s splitter, text []byte) []string {
	s.reset(text)
	var out []string
	ends := make([]int, 2*blockSize)
	start := 0
	for n := s.next(ends); n > 0; n = s.next(ends) {
		for _, end := range ends[:n] {
			out = append(out, string(text[start:end]))
			start = end
		}
	}
	return out
}

// oracle is the splitter that follows the regular expression of p.
func oracle(t testing.TB, p pattern) splitter {
	t.Helper()
	re, err := compileRegexp(p.regex)
	if err != nil {
		t.Fatal(err)
	}
	return &regexpSplitter{re: re}
}

// checkSplit fails when the hand-written splitter of p and its regular expression cut text differently.
func checkSplit(t rapid.TB, p pattern, want splitter, text []byte) {
	t.Helper()
	got, exp := split(p.new(), text), split(want, text)
	for i := range max(len(got), len(exp)) {
		if i >= len(got) || i >= len(exp) || got[i] != exp[i] {
			t.Fatalf("%s: text %q\n piece %d\n got  %q\n want %q",
				p.name, text, i, got[min(i, len(got)):min(i+4, len(got))], exp[min(i, len(exp)):min(i+4, len(exp))])
		}
	}
}

// pieces that meet at the seams of the patterns' alternatives.
var pieces = []string{
	"a", "B", "word", "Hello", "s", "S", "t", "re", "RE", "ll", "d", "ve", "m", "'", "'", "''", "'s", "'LL",
	"'ſ", "ſ", "K", " ", " ", " ", "  ", "   ", "\t", "\t\t", "\n", "\n", "\r\n", "\r", "\v", "\f", "\n\n", " \n",
	"\n ", "\u00a0", "\u2003", "\u3000", "\u0085", "\u2028", "1", "12", "123", "1234", "1234567", "٣", "²", "Ⅷ", "½",
	".", ",", "(", ")", "((", "//", "{}", "_", "\"", "-", "\x00", "\x1c", "\x7f", "€", "–", "😀", "👩‍🚀",
	"é", "ß", "É", "ÉA", "ǅ", "ʰ", "aB", "ABc", "e\u0301x", "\u0301", "/", "/\n/", "\n//", "it's'd", "Жук", "中文", "日本語",
	"עברית", "e\u0301", "ᾳ", "𝒳", "ﬆ", "\xff", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc0\xaf",
	"\xed\xa0\x80", "\xc1", strings.Repeat("x", 30), strings.Repeat(" ", 30), strings.Repeat("=", 30),
	strings.Repeat("\n", 20), strings.Repeat(" \n", 20), strings.Repeat("7", 31),
}

// text draws a document that is mostly made of pieces, with some random runes and bytes.
func drawText(t *rapid.T) []byte {
	var b bytes.Buffer
	for _, k := range rapid.SliceOfN(rapid.IntRange(0, len(pieces)*9/8), 0, 120).Draw(t, "pieces") {
		switch {
		case k < len(pieces):
			b.WriteString(pieces[k])
		case k%2 == 0:
			b.WriteRune(rapid.Rune().Draw(t, "rune"))
		default:
			b.WriteByte(rapid.Byte().Draw(t, "byte"))
		}
	}
	return b.Bytes()
}

func TestSplittersMatchTheirPatterns(t *testing.T) {
	for _, p := range patterns {
		t.Run(p.name, func(t *testing.T) {
			want := oracle(t, p)
			rapid.Check(t, func(t *rapid.T) { checkSplit(t, p, want, drawText(t)) })
		})
	}
}

// Patterns written in other ways cut as the known ones that stand for them.
func TestOtherNamesMeanTheSame(t *testing.T) {
	for name, g := range otherNames {
		if p, err := parsePattern(name); err != nil || p.name != patterns[g].name {
			t.Errorf("%.40s is taken for %q (%v), want %s", name, p.name, err, patterns[g].name)
		}
		if !strings.Contains(name, "|") {
			continue
		}
		read := strings.Replace(name, `\p{N}{1,3}+`, `(?>\p{N}{1,3})`, 1) // as tiktoken does
		want := oracle(t, pattern{regex: read})
		rapid.Check(t, func(t *rapid.T) { checkSplit(t, patterns[g], want, drawText(t)) })
	}
}

// Every text of up to six characters, one of each class and the letters of contractions, in a context that makes the
// block path see it: exhaustive where the rules interact.
func TestSplittersMatchTheirPatternsExhaustively(t *testing.T) {
	alphabet := []byte("aA \n(1's/")
	const length = 5
	total := 1
	for range length {
		total *= len(alphabet)
	}
	for _, p := range patterns {
		want := oracle(t, p)
		var text []byte
		var marks int
		for k := range total {
			for x, i := k, 0; i < length; i++ {
				text = append(text, alphabet[x%len(alphabet)])
				x /= len(alphabet)
			}
			text = append(text, "x.y"...) // ends each word, whatever it is, the same way
			if marks++; marks == 1024 || k == total-1 {
				checkSplit(t, p, want, text)
				text, marks = text[:0], 0
			}
		}
	}
}

func TestSplittersMatchTheirPatternsOnSource(t *testing.T) {
	docs, _ := sourceSample(t, 1<<20)
	comments, _ := prose(docs)
	for _, p := range patterns {
		want := oracle(t, p)
		for i, d := range docs {
			checkSplit(t, p, want, d)
			checkSplit(t, p, want, comments[i])
		}
	}
}

// checkBlocks fails when blocks and the path of one pretoken at a time cut text differently.
func checkBlocks(t rapid.TB, text []byte) {
	t.Helper()
	ends := make([]int, 4*blockSize)
	for _, p := range patterns {
		s := p.new().(*handSplitter)
		s.reset(text)
		start := 0
		for n := s.next(ends); n > 0; n = s.next(ends) {
			for _, end := range ends[:n] {
				if want := s.one(start); end != want {
					t.Fatalf("%s, text %q: at %d blocks find %q, one pretoken is %q",
						p.name, text, start, text[start:end], text[start:want])
				}
				start = end
			}
		}
		if start != len(text) {
			t.Fatalf("%s, text %q: ends at %d", p.name, text, start)
		}
	}
}

func TestBlocksMatchSinglePretokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkBlocks(t, drawText(t)) })
}

// Every two pieces in every place around the end of a block, which pretokens of one byte lead up to.
func TestBlocksMatchSinglePretokensAtTheirEnds(t *testing.T) {
	for at := blockSize - 8; at <= blockSize+1; at++ {
		for _, a := range pieces {
			for _, b := range pieces {
				text := append([]byte(strings.Repeat("a1", blockSize)[:at]), a...)
				text = append(text, b...)
				checkBlocks(t,
					append(text, " and so on until the block is full and another one begins, which is all it takes"...))
			}
		}
	}
}

// Every byte at every place, among others: the assembly and the portable code agree.
func TestAssembledClassesAreThoseOfClassify(t *testing.T) {
	if !assembled {
		t.Skip("no assembly on this machine, or not wanted")
	}
	var b [blockSize]byte
	for c := range 256 {
		for at := range b {
			for i := range b {
				b[i] = byte(c*i*7 + at*i + i>>3)
			}
			b[at] = byte(c)
			var got masks
			classifyAssembled(&b, &got)
			if want := classify(&b); got != want {
				t.Fatalf("block %q:\n got  %x\n want %x", b, got, want)
			}
		}
	}
}

// classOfRune is what package unicode says.
func classOfRune(r rune, cases bool) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsSpace(r):
		return space
	case cases && unicode.In(r, unicode.Lu, unicode.Lt):
		return upper
	case cases && unicode.IsLower(r) && unicode.IsLetter(r) && !unicode.In(r, unicode.Lm, unicode.Lo):
		return lower
	case cases && unicode.IsMark(r):
		return mark
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	}
	return other
}

func TestClassTables(t *testing.T) {
	for cases, table := range map[bool]*runeClasses{false: classTable(), true: caseTable()} {
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if got, want := table.classes[table.page[r>>8]][r&0xff], classOfRune(r, cases); got != want {
				t.Fatalf("U+%04X: class %d, package unicode says %d", r, got, want)
			}
		}
		if len(table.classes) > 256 {
			t.Errorf("%d pages do not fit their numbers", len(table.classes))
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, p := range pieces {
		f.Add([]byte("x" + p + " y's" + p))
	}
	want := map[string]splitter{}
	for _, p := range patterns {
		want[p.name] = oracle(f, p)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, p := range patterns {
			checkSplit(t, p, want[p.name], text)
		}
	})
}
