package dedup

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The kernels are the generic code, on any bytes and any number of values.
func TestKernelsEqualGeneric(t *testing.T) {
	s, err := MinHash{}.NewSigner()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Uint32(), 0, 70).Draw(t, "xs")
		var got, want [lanes]uint32
		for i := range got {
			got[i] = rapid.SampledFrom([]uint32{0, 1 << 31, math.MaxUint32}).Draw(t, "minimum")
		}
		want = got
		minHash(&got, &s.a[0], &s.b[0], xs)
		minHashGeneric(&want, &s.a[0], &s.b[0], xs)
		if got != want {
			t.Fatalf("minima of %v differ", xs)
		}
		n := rapid.IntRange(0, 5).Draw(t, "blocks")
		src := rapid.SliceOfN(rapid.Byte(), 64*n, 64*n).Draw(t, "src")
		if rapid.Bool().Draw(t, "ascii") {
			for i := range src {
				src[i] &= 0x7f
			}
		}
		a, b := make([]byte, 64*n), make([]byte, 64*n)
		ma, mb := make([]uint64, n), make([]uint64, n)
		if ha, hb := normalise(a, src, ma), normaliseGeneric(b, src, mb); ha != hb || string(a) != string(b) ||
			!slices.Equal(ma, mb) {
			t.Fatalf("%q: %q %x %v, generic %q %x %v", src, a, ma, ha, b, mb, hb)
		}
	})
}

// Hashes are those of strings.Fields of the folded text, and Normal is these joined.
func TestWordsAreTheFieldsOfTheFoldedText(t *testing.T) {
	var w, one Words
	rapid.Check(t, func(t *rapid.T) {
		alphabet := rapid.SampledFrom([]string{"aB3 _\n", "aaaaaaaaaaaa ", "añ 日本é…\xff٣",
			"abcdefghijklmnopqrstuvwxyz"}).Draw(t, "alphabet")
		text := rapid.StringOfN(rapid.SampledFrom([]rune(alphabet)), 0, 300, -1).Draw(t, "text")
		var b strings.Builder
		for _, c := range foldRunes(nil, []byte(text)) {
			b.WriteByte(folded[c])
		}
		fields := strings.Fields(b.String())
		if strings.Contains(alphabet, "é") { // strings.Fields knows blanks above ASCII
			fields = slices.DeleteFunc(strings.Split(b.String(), " "), func(s string) bool { return s == "" })
		}
		want := []uint64{}
		for _, f := range fields {
			want = append(want, one.Hashes([]byte(f))[0])
		}
		if got := w.Hashes([]byte(text)); !slices.Equal(got, want) {
			t.Fatalf("%q: %d hashes, want those of %q", text, len(got), fields)
		}
		if got := string(w.Normal(nil, []byte(text))); got != strings.Join(fields, " ") {
			t.Fatalf("%q: %q, want %q", text, got, fields)
		}
	})
}

func TestNormalisedWords(t *testing.T) {
	var w Words
	for text, want := range map[string]string{
		"Don't PANIC, Page 42:\t\"the_End\"…": "don t panic page 00 the end",
		"Straße ÉCOLE «x» ٣٤":                 "straße école x 00",
		"日本語 and ไทย":                         "日 本 語 and ไ ท ย",
		" \n\x00.,":                           "",
	} {
		if got := string(w.Normal(nil, []byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// NGrams by the rolling sum are the sums.
func TestNGramsRoll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.Uint64(), 0, 40).Draw(t, "words")
		given := rapid.IntRange(-1, 15).Draw(t, "n")
		n := max(given, 1)
		var want []uint64
		for i := 0; len(words) > 0 && i+min(n, len(words)) <= len(words); i++ {
			sum := uint64(0)
			for _, w := range words[i : i+min(n, len(words))] {
				sum = sum*k1 + w
			}
			want = append(want, sum)
		}
		if got := NGrams(slices.Clone(words), given); !slices.Equal(got, want) {
			t.Fatalf("%d-grams of %v: %v, want %v", n, words, got, want)
		}
	})
}

// Pairs of documents with a planted Jaccard similarity become candidates as often as 1−(1−s^r)^b says, within 3σ.
func TestSCurve(t *testing.T) {
	const pairs, size = 1500, 120
	for _, cfg := range []MinHash{{}, {Bands: 20, Rows: 13}} {
		s, err := cfg.NewSigner()
		if err != nil {
			t.Fatal(err)
		}
		cfg = s.cfg
		x := uint64(1)
		for _, share := range []int{30, 50, 70, 80, 90, 100, 110} { // of 120 n-grams of each
			j := float64(share) / float64(2*size-share)
			hits := 0
			for range pairs {
				set := make([]uint32, 2*size-share)
				for i := range set {
					x++
					set[i] = uint32(fold64(x*k1, k2))
				}
				first := slices.Clone(s.bands(set[:size]))
				for i, k := range s.bands(set[size-share:]) {
					if k == first[i] {
						hits++
						break
					}
				}
			}
			p := 1 - math.Pow(1-math.Pow(j, float64(cfg.Rows)), float64(cfg.Bands))
			got, sigma := float64(hits)/pairs, math.Sqrt(p*(1-p)/pairs)
			t.Logf("%d×%d s = %.3f: measured %.4f, formula %.4f, σ %.4f", cfg.Bands, cfg.Rows, j, got, p, sigma)
			if math.Abs(got-p) > 3*sigma+1.0/pairs {
				t.Errorf("%d×%d, s = %.3f: %.4f of pairs, formula %.4f ± %.4f", cfg.Bands, cfg.Rows, j, got, p, 3*sigma)
			}
		}
	}
}

// goroot is where the Go toolchain lies.
func goroot(tb testing.TB) string {
	tb.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// library is some of the text that every Go machine has.
func library(tb testing.TB, most int) (docs [][]byte, bytes int64) {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(goroot(tb), "src", "*", "*.go"))
	if err != nil || len(files) == 0 {
		tb.Skip("no sources of the standard library: ", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		docs = append(docs, b)
		if bytes += int64(len(b)); bytes > int64(most) {
			break
		}
	}
	return docs, bytes
}

func BenchmarkSign(b *testing.B) {
	docs, size := library(b, 8<<20)
	s, err := MinHash{}.NewSigner()
	if err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]func([]byte){
		"fold":  func(d []byte) { s.words.fold(d) },
		"words": func(d []byte) { s.words.Hashes(d) },
		"grams": func(d []byte) { s.Grams(d) },
		"keys":  func(d []byte) { s.Keys(d) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				for _, d := range docs {
					f(d)
				}
			}
		})
	}
}

// BenchmarkNear is the whole way, from text to clusters, on one core.
func BenchmarkNear(b *testing.B) {
	docs, size := library(b, 8<<20)
	b.SetBytes(size)
	for b.Loop() {
		n, err := NewNear(MinHash{}, 64<<20, b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		s, _ := MinHash{}.NewSigner()
		for i, d := range docs {
			n.Add(uint64(i), s.Keys(d))
		}
		pairs := NewPairs(1<<20, b.TempDir())
		if err := n.Link(pairs, 1); err != nil {
			b.Fatal(err)
		}
		if _, err := NewClusters(pairs.All()); err != nil {
			b.Fatal(err)
		}
		n.Close()
		pairs.Close()
	}
}
