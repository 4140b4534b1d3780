package fasttext

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// goldenCase is a text with the predictions of the original.
type goldenCase struct {
	Text string
	All  []goldenScore // all labels, or the best ones
	Two  []goldenScore // the best two with a score of at least 0.2
}

type goldenScore struct {
	Label string
	Score float64
}

func (g *goldenScore) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&g.Label, &g.Score})
}

func readGolden(t testing.TB, name string) (g map[string][]goldenCase) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = json.Unmarshal(b, &g)
	}
	if err != nil || len(g) == 0 {
		t.Fatalf("%s: %v", name, err)
	}
	return g
}

// Labels and scores equal the original's for each loss, word and character n-grams, product codes with and without
// norms, pruned dictionaries and quantised outputs.
func TestPredictionsAreTheOriginals(t *testing.T) {
	compareWithOriginal(t, "golden.json")
}

func compareWithOriginal(t *testing.T, name string) {
	worst := 0.0
	for file, cases := range readGolden(t, name) {
		m, err := Load(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		p := m.NewPredictor()
		for _, c := range cases {
			scores := p.Scores([]byte(c.Text))
			for _, want := range c.All {
				got := 0.0
				for i, l := range m.Labels() {
					if l == want.Label && scores != nil {
						got = float64(scores[i])
					}
				}
				worst = max(worst, math.Abs(got-want.Score))
				if math.Abs(got-want.Score) > 1e-5 {
					t.Errorf("%s: %q is %s with %.7f, want %.7f", file, c.Text, want.Label, got, want.Score)
				}
			}
			two := p.Predict([]byte(c.Text), 2, 0.2)
			if len(two) != len(c.Two) {
				t.Errorf("%s: %q has the labels %v, want %v", file, c.Text, two, c.Two)
				continue
			}
			for i, want := range c.Two {
				if math.Abs(float64(two[i].Score)-want.Score) > 1e-5 {
					t.Errorf("%s: %q: label %d has %v, want %v", file, c.Text, i, two[i], want)
				}
			}
		}
	}
	t.Logf("%s: scores differ by %.1e at most", name, worst)
}

// Scores do not depend on earlier texts or on the size of the token table.
func TestScoresDependOnTheTextAlone(t *testing.T) {
	for file, cases := range readGolden(t, "golden.json") {
		m, err := Load(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		warm, narrow := m.NewPredictor(), m.NewPredictor()
		narrow.keys = narrow.keys[:1] // each token replaces the one before
		for range 2 {
			for _, c := range cases {
				want := m.NewPredictor().Scores([]byte(c.Text))
				for name, p := range map[string]*Predictor{"after others": warm, "with a table for one token": narrow} {
					for i, got := range p.Scores([]byte(c.Text)) {
						if math.Float32bits(got) != math.Float32bits(want[i]) {
							t.Fatalf("%s: %q has the score %v %s, alone %v", file, c.Text, got, name, want[i])
						}
					}
				}
			}
		}
	}
}
