package curate

import (
	"math/rand/v2"
	"slices"
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
			"letter": {b.letter, k&letter != 0}, "digit": {b.digit, c >= '0' && c <= '9'}, "word": {b.word, k&wordy != 0}, "newline": {b.newline, c == '\n'},
			"space": {b.space, k == space}, "foreign": {b.foreign, c >= 0x80}, "control": {b.control, c < ' ' && c != '\t' && c != '\n' || c == 0x7f},
			"joiner": {b.joiner, c == '\'' || c == '-'}, "closer": {b.closer, c == '"' || c == '\'' || c == ')' || c == ']'},
			"mark": {b.mark, c == '.' || c == '?' || c == '!'}, "hash": {b.hash, c == '#'}, "odd": {b.odd, c == '[' || c == '{' || i == blockSize-1},
		} {
			if got := m.mask>>(i%blockSize)&1 != 0; got != m.want {
				t.Errorf("byte %d, %#x: %s is %v", i, c, name, got)
			}
		}
	}
}
