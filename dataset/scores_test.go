package dataset

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Scores come back as they were written, and the file is, byte for byte, what the comment of Scores says.
func TestScoresComeBack(t *testing.T) {
	d := build(t, []string{"ab", "c", ""}, BuildOptions{})
	values := []float32{1.5, float32(math.NaN()), -0.25}
	if err := d.WriteScores(Scores{Name: "x", About: "by hand", Values: values}); err != nil {
		t.Fatal(err)
	}
	s, err := d.ReadScores("x")
	if err != nil || s.Name != "x" || s.About != "by hand" || len(s.Values) != 3 || s.Values[0] != 1.5 ||
		s.Values[1] == s.Values[1] || s.Values[2] != -0.25 {
		t.Errorf("read %+v, %v", s, err)
	}
	raw, err := os.ReadFile(d.ScoresPath("x"))
	if err != nil || len(raw) != 256+12 || string(raw[56:63]) != "by hand" ||
		!bytes.Equal(raw[256:260], []byte{0, 0, 0xc0, 0x3f}) {
		t.Errorf("%d bytes, %v: % x", len(raw), err, raw)
	}
	if err := d.WriteScores(Scores{Name: "long", About: strings.Repeat("é", 150), Values: values}); err != nil {
		t.Fatal(err)
	}
	if s, err := d.ReadScores("long"); err != nil || s.About != strings.Repeat("é", 98) {
		t.Errorf("a long description came back as %q, %v", s.About, err)
	}
}

func TestWrongScoresAreRefused(t *testing.T) {
	d := build(t, []string{"ab", "c"}, BuildOptions{Dir: filepath.Join(t.TempDir(), "web[1]")})
	for want, s := range map[string]Scores{
		"not a valid name": {Name: "../x", Values: []float32{1, 2}},
		"3 scores for":     {Name: "x", Values: []float32{1, 2, 3}},
		"document 1":       {Name: "x", Values: []float32{1, float32(math.Inf(1))}},
	} {
		if err := d.WriteScores(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("writing: %v, want %q", err, want)
		}
	}
	if err := d.WriteScores(Scores{Name: "good", Values: []float32{1, 2}}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadScores("other"); err == nil || !strings.Contains(err.Error(), "it has good") ||
		!strings.Contains(err.Error(), "anneal data score") || !strings.Contains(err.Error(), "if that is one of its") {
		t.Errorf("none of that name: %v", err)
	}
	if _, err := d.ReadScores("../good"); err == nil {
		t.Error("a path is taken for a name")
	}
	raw, err := os.ReadFile(d.ScoresPath("good"))
	if err != nil {
		t.Fatal(err)
	}
	for at := range raw {
		bad := bytes.Clone(raw)
		bad[at] ^= 4
		if _, err := d.decodeScores(bytes.NewReader(bad), int64(len(bad))); err == nil {
			t.Errorf("a changed byte %d is not noticed", at)
		}
		if _, err := d.decodeScores(bytes.NewReader(raw[:at]), int64(at)); err == nil {
			t.Errorf("a file cut at byte %d is not noticed", at)
		}
	}
	other := build(t, []string{"ab", "d"}, BuildOptions{})
	if _, err := other.decodeScores(bytes.NewReader(raw), int64(len(raw))); err == nil ||
		!strings.Contains(err.Error(), "belong to the data") {
		t.Errorf("scores of other data: %v", err)
	}
}

// FuzzScores reads arbitrary bytes as scores: no panic, no infinity, and memory that goes by the data set alone.
func FuzzScores(f *testing.F) {
	d := build(f, []string{"ab", "c", "d"}, BuildOptions{})
	good := d.encodeScores(Scores{About: "x", Values: []float32{1, 2, 3}})
	f.Add(good[:scoresHeader], good[scoresHeader:], true)
	f.Add(good[:24], []byte{}, false)
	f.Fuzz(func(t *testing.T, head, body []byte, seal bool) {
		raw := make([]byte, scoresHeader, scoresHeader+len(body))
		copy(raw, head)
		raw = append(raw, body...)
		if seal {
			binary.LittleEndian.PutUint32(raw[12:], crc32.Checksum(body, castagnoli))
			binary.LittleEndian.PutUint32(raw[scoresHeader-4:], crc32.Checksum(raw[:scoresHeader-4], castagnoli))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := d.decodeScores(bytes.NewReader(raw), int64(len(raw)))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 16<<10 {
			t.Errorf("%d bytes: allocated %d", len(raw), got)
		}
		for _, v := range s.Values {
			if err == nil && math.IsInf(float64(v), 0) {
				t.Errorf("accepted %v", s.Values)
			}
		}
	})
}

// A document that does not exist, or comes before the one listed before it, is an error: its head would be missing, and
// those of later ones would seem to be its own.
func TestHeadsOfDocumentsThatCannotBeRead(t *testing.T) {
	d := build(t, []string{"ab", "c", "def"}, BuildOptions{})
	if heads, tokens, err := d.Heads([]uint64{0, 2, 2}, 1); err != nil || len(heads) != 3 || tokens[2] != 3 {
		t.Errorf("%v, %v, %v", heads, tokens, err)
	}
	for _, list := range [][]uint64{{3}, {2, 1}, {1, 0, 2}} {
		if heads, _, err := d.Heads(list, 1); err == nil {
			t.Errorf("%d: %v", list, heads)
		}
	}
}
