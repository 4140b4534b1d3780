package curate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Assembly and table give the same masks for every pair of bytes, and for any bytes behind each other.
func TestMasksOfAssemblyAreThoseOfTheTable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var text []byte
	for c := range 1 << 16 {
		text = append(text, byte(c), byte(c>>8))
	}
	for range 1 << 16 {
		text = append(text, "vacpsukiermsjavVACPSUKIERMSJAV {[.\n\t'"[r.IntN(37)])
	}
	text = append(text, make([]byte, lookahead)...)
	got, want := make([]block, len(text)/blockSize), make([]block, len(text)/blockSize)
	classify(got, text)
	classifyGeneric(want, text)
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%q: masks %x, want %x", text[blockSize*i:blockSize*(i+1)+lookahead], got[i], want[i])
		}
	}
	if slices.IndexFunc(want, func(b block) bool { return b.odd != 0 }) < 0 {
		t.Fatal("nothing odd in the text")
	}
}

// The table's masks are what the definitions say, byte by byte.
func TestMasksMatchTheirDefinition(t *testing.T) {
	text := make([]byte, 4*blockSize+lookahead)
	for i := range 4 * blockSize {
		text[i] = byte(i)
	}
	copy(text[blockSize-1:], "JAvx") // across two blocks
	blocks := make([]block, 4)
	classifyGeneric(blocks, text)
	for i, c := range text[:4*blockSize] {
		b := blocks[i/blockSize]
		k := class[c]
		for name, m := range map[string]struct {
			mask uint64
			want bool
		}{
			"letter": {b.letter, k&letter != 0}, "digit": {b.digit, c >= '0' && c <= '9'},
			"word": {b.word, k&wordy != 0}, "newline": {b.newline, c == '\n'},
			"space": {b.space, k == space}, "foreign": {b.foreign, c >= 0x80},
			"control": {b.control, c < ' ' && c != '\t' && c != '\n' || c == 0x7f},
			"joiner":  {b.joiner, c == '\'' || c == '-'},
			"closer":  {b.closer, c == '"' || c == '\'' || c == ')' || c == ']'},
			"mark":    {b.mark, c == '.' || c == '?' || c == '!'}, "hash": {b.hash, c == '#'},
			"odd": {b.odd, c == '[' || c == '{' || i == blockSize-1},
		} {
			if got := m.mask>>(i%blockSize)&1 != 0; got != m.want {
				t.Errorf("byte %d, %#x: %s is %v", i, c, name, got)
			}
		}
	}
}

// What Normalize and PII do to a text, and how many sentences C4 counts, does not depend on where its blocks end.
func TestNothingDependsOnWhereBlocksEnd(t *testing.T) {
	for _, text := range []string{
		"a \nb", "a\t\nb", "a\n\n\nb", "a\n\nb", "a b\nc", "a\x00b", "a\u00a0b", "a\u2003\nb", "é\n\n\né", "\xe2\x80",
		"to 8.8.4.4, 1.2.3.4.5 and 10.0.0.1", "a@b.io 1.1.1.1",
	} {
		for _, f := range []*Filter{Normalize(), PII()} {
			alone := &Doc{Text: []byte(text)}
			f.Apply(alone)
			for shift := range 2 * blockSize {
				head := strings.Repeat("x", shift) + "x "
				d := &Doc{Text: []byte(head + text)}
				if f.Apply(d); string(d.Text) != head+string(alone.Text) {
					t.Fatalf("%s: %q becomes %q, but %d bytes further on %q",
						f.Name, text, alone.Text, len(head), d.Text[len(head):])
				}
			}
		}
	}
	text := "One two (three.\"') Four. Five five.)]) six"
	for shift := range 2 * blockSize {
		d := &Doc{Text: []byte(strings.Repeat("x", shift) + text)}
		if C4(true).Apply(d); d.signal(t, "c4.sentences") != 4 {
			t.Errorf("%q: %v sentences, want 4", d.Text, d.signal(t, "c4.sentences"))
		}
	}
}
