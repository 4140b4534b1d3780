package nfc

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// The algorithm for long runs of marks agrees with the library on short runs, and keeps bytes that are not UTF-8.
func TestComposeMarksMatchesTheLibrary(t *testing.T) {
	runes := rapid.SampledFrom(
		[]rune("aeqAéÅẛ한한गक़\u0300\u0301\u0323\u0327\u0345\u0344\u0f71\u0f72\u1100\u212b\u0958"))
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(string(rapid.SliceOfN(runes, 0, 12).Draw(t, "runes")))
		if rapid.Bool().Draw(t, "broken") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			text = append(append(bytes.Clone(text[:at]), 0xff), text[at:]...)
		}
		if got, want := composeMarks(nil, text), norm.NFC.Bytes(text); !bytes.Equal(got, want) {
			t.Fatalf("%+q: got %+q, want %+q", text, got, want)
		}
	})
}

// Sixty accents in a row stay sixty, and a mark that is out of order is sorted into its place.
func TestLongRunsOfMarksGetNothingPutInBetween(t *testing.T) {
	acutes := strings.Repeat("\u0301", 60)
	for text, want := range map[string]string{
		"x" + acutes:            "x" + acutes,
		"e" + acutes:            "\u00e9" + acutes[2:],
		"x" + acutes + "\u0323": "x\u0323" + acutes, // a dot below, class 220, comes before accents, 230
	} {
		if got := string(Append([]byte("<"), []byte(text))); got != "<"+want {
			t.Errorf("%+q became %+q, want %+q", text, got[1:], want)
		}
	}
}
