package score

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// lexicalrichness counts the same factors, a second implementation of Flesch the same words, sentences and syllables,
// and zlib compresses as well within 4 % and 48 bytes (testdata/golden.py).
func TestScoresMatchTheOriginals(t *testing.T) {
	var golden struct {
		Cases []struct {
			Text               string
			Words              int
			MTLD, Flesch, Zlib float64
		}
	}
	raw, err := os.ReadFile("testdata/golden.json")
	if err == nil {
		err = json.Unmarshal(raw, &golden)
	}
	if err != nil || len(golden.Cases) == 0 {
		t.Fatal(err)
	}
	compression := NewCompression()
	for i, c := range golden.Cases {
		text, n := []byte(c.Text), 0
		words(text, func(int, int) { n++ })
		if n != c.Words {
			t.Errorf("text %d: %d words, want %d", i, n, c.Words)
		}
		if got := MTLD(text); math.Abs(got-c.MTLD) > 1e-9*c.MTLD {
			t.Errorf("text %d: MTLD %v, want %v", i, got, c.MTLD)
		}
		if got := Flesch(text); math.Abs(got-c.Flesch) > 1e-9 {
			t.Errorf("text %d: Flesch %v, want %v", i, got, c.Flesch)
		}
		if got := compression(text); math.Abs(got-c.Zlib) > 0.04*c.Zlib+48/float64(len(text)) {
			t.Errorf("text %d: compression %v, zlib %v", i, got, c.Zlib)
		}
	}
}

func TestScoresByHand(t *testing.T) {
	for text, want := range map[string]float64{
		"a a a a":           2,                     // a factor every two words
		"A b, a":            3,                     // 2/3 ends the first
		"the cat the dog":   (4 + 4*0.28/0.25) / 2, // one factor and none of the next; backwards 0.25/0.28 of one
		"all words differ":  3,                     // one factor by convention
		"x_1 don't DON’T é": 4,                     // four words: the apostrophes are different
		// forwards one factor and none of the next; backwards 2/3 ends the first
		"a a b": 3,
	} {
		if got := MTLD([]byte(text)); math.Abs(got-want) > 1e-12 {
			t.Errorf("MTLD of %q is %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]float64{
		"The cat sat on the mat.":      206.835 - 1.015*6 - 84.6,
		"The cat. (It sat!) On a mat?": 206.835 - 1.015*7/3 - 84.6,
		"A table\n \nMake 3 or 4":      206.835 - 1.015*4/2 - 84.6*5/4,
		"version 1.2 of x.y ":          206.835 - 1.015*4 - 84.6*5/4,
	} {
		if got := Flesch([]byte(text)); math.Abs(got-want) > 1e-9 {
			t.Errorf("Flesch of %q is %v, want %v", text, got, want)
		}
	}
	for word, want := range map[string]int{
		"the": 1, "make": 1, "table": 2, "whole": 1, "queue": 1, "apple": 2, "reading": 2, "rhythm": 1, "O": 1,
		"hmm": 1, "élan": 1, "42": 0, "isn't": 1, "Employee": 2, "area": 2, "e": 1,
	} {
		if got := syllablesOf([]byte(word)); got != want {
			t.Errorf("%q has %d syllables, want %d", word, got, want)
		}
	}
	compression := NewCompression()
	random := make([]byte, 1<<15)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(random)
	first := compression([]byte(strings.Repeat("again ", 1000)))
	if noise := compression(random); noise < 1 || noise > 1.001 || first > 0.01 ||
		compression([]byte(strings.Repeat("again ", 1000))) != first {
		t.Errorf("compression of noise %v, of a repeated word %v and then another number", noise, first)
	}
	for _, m := range Metrics {
		if got := m.New()(nil); got == got {
			t.Errorf("%s of nothing is %v", m.Name, got)
		}
	}
}

// Read backwards, word by word, a text has the same MTLD; and any bytes have a score that is not infinite, or none.
func TestAnyTextHasAScore(t *testing.T) {
	compression := NewCompression()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom(strings.Fields("a b c d ü e_f 7")), 1, 200).Draw(t, "words")
		there := MTLD([]byte(strings.Join(list, " ")))
		slices.Reverse(list)
		if back := MTLD([]byte(strings.Join(list, "\n"))); math.Abs(there-back) > 1e-9*there {
			t.Fatalf("%v: MTLD %v, backwards %v", list, there, back)
		}
		text := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		for name, got := range map[string]float64{
			"mtld": MTLD(text), "flesch": Flesch(text), "compression": compression(text),
		} {
			if math.IsInf(got, 0) {
				t.Fatalf("%s of %q is %v", name, text, got)
			}
		}
	})
}

func TestLinesOfScores(t *testing.T) {
	got, err := ReadLines(strings.NewReader("1\n-2.5e1\r\nnull\n{\"id\": [7], \"score\": 0.5}\n {\"score\":null}"), 5)
	if err != nil || got[0] != 1 || got[1] != -25 || got[2] == got[2] || got[3] != 0.5 || got[4] == got[4] {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{
		"1\n":                 "1 lines, but the training split has 2",
		"1\n2\n3\n":           "more than 2",
		"1\n\n":               "line 2",
		"1\nNaN\n":            "line 2",
		"1\n\"2\"\n":          "line 2",
		"1\n{\"value\": 2}\n": "no \"score\"",
		"1\n1e39\n":           "too large",
		"1\n" + strings.Repeat(" ", 2<<20) + "2\n": "longer than 1 MiB",
	} {
		if got, err := ReadLines(strings.NewReader(text), 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, %v, want %q", text, got, err, want)
		}
	}
}

// FuzzReadLines reads arbitrary bytes as scores: no panic, no infinity, and memory that goes by the file.
func FuzzReadLines(f *testing.F) {
	f.Add([]byte("1\nnull\n{\"score\": 2}\n"), uint64(3))
	f.Fuzz(func(t *testing.T, b []byte, documents uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		scores, err := ReadLines(bytes.NewReader(b), documents)
		runtime.ReadMemStats(&after)
		if got, ceiling := after.TotalAlloc-before.TotalAlloc, uint64(64<<10+500*len(b)); got > ceiling {
			t.Errorf("%d bytes: allocated %d, ceiling %d", len(b), got, ceiling)
		}
		for _, v := range scores {
			if math.IsInf(float64(v), 0) || err != nil {
				t.Errorf("%v, %v", scores, err)
			}
		}
	})
}

func BenchmarkMetrics(b *testing.B) {
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range Metrics {
		b.Run(m.Name, func(b *testing.B) {
			f := m.New()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				f(raw)
			}
		})
	}
}
