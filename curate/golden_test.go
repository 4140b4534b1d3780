package curate

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

type golden struct {
	Documents []struct {
		Text     string
		Verdicts map[string]string
		Ratios   map[string]float64
		After    map[string]string
	}
	PII []struct{ Text, After string }
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	b, err := os.ReadFile("testdata/datatrove.json")
	if err == nil {
		err = json.Unmarshal(b, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// What datatrove calls the rules.
var datatroveRules = map[string]string{
	"gopher_short_doc": "gopher_quality.words", "gopher_long_doc": "gopher_quality.words",
	"gopher_below_avg_threshold":   "gopher_quality.word_length",
	"gopher_above_avg_threshold":   "gopher_quality.word_length",
	"gopher_too_many_hashes":       "gopher_quality.hash_ratio",
	"gopher_too_many_ellipsis":     "gopher_quality.ellipsis_ratio",
	"gopher_too_many_bullets":      "gopher_quality.bullet_lines",
	"gopher_too_many_end_ellipsis": "gopher_quality.ellipsis_lines",
	"gopher_below_alpha_threshold": "gopher_quality.alpha_words",
	"gopher_enough_stop_words":     "gopher_quality.stop_words",
	"dup_para_frac":                "gopher_repetition.duplicate_paragraphs",
	"dup_para_char_frac":           "gopher_repetition.duplicate_paragraph_chars",
	"dup_line_frac":                "gopher_repetition.duplicate_lines",
	"dup_line_char_frac":           "gopher_repetition.duplicate_line_chars",
	"line_punct_ratio":             "fineweb.ended_lines", "short_line_ratio": "fineweb.short_lines",
	"char_dup_ratio": "fineweb.duplicate_chars",
	"list_ratio":     "fineweb.newline_ratio", "lorem_ipsum": "c4.lorem_ipsum", "curly_bracket": "c4.curly_brackets",
	"too_few_sentences": "c4.sentences", "< 3 paragraphs": "c4_paragraphs.third_longest_line", "": "",
}

func ourRule(name string) string {
	if r, ok := datatroveRules[name]; ok {
		return r
	}
	name = strings.Replace(name, "duplicated_", "duplicate_", 1)
	return "gopher_repetition." + strings.Replace(name, "_n_grams", "_grams", 1)
}

// Over the same tokens each filter drops what datatrove's drops, by the same rule, and leaves the same text.
func TestVerdictsAreDatatroves(t *testing.T) {
	dropped := map[string]bool{}
	for i, c := range readGolden(t).Documents {
		for name, f := range map[string]*Filter{
			"gopher_quality": GopherQuality(), "gopher_repetition": GopherRepetition(), "fineweb": FineWeb(),
			"c4": C4(false), "c4_any_end": C4(true),
			"c4_paragraphs": C4Paragraphs(),
		} {
			d := &Doc{Text: []byte(c.Text)}
			v := f.Apply(d)
			want := ourRule(c.Verdicts[name])
			// of two reasons datatrove takes that of the earlier line
			page := strings.HasPrefix(name, "c4") && v.Rule != "" && want != ""
			if v.Rule != want && !page || v.Drop != (want != "") {
				t.Errorf("document %d, %s: %q (%v), want %q", i, name, v.Rule, v.Value, want)
			}
			dropped[v.Rule] = true
			if after, ok := c.After[name]; ok && after != string(d.Text) {
				t.Errorf("document %d, %s leaves %q, want %q", i, name, d.Text, after)
			}
		}
		d := &Doc{Text: []byte(c.Text)}
		for _, f := range []*Filter{GopherRepetition(), GopherQuality(), FineWeb()} {
			f.Apply(d)
		}
		for name, want := range c.Ratios {
			if got := d.signal(t, name); math.Abs(got-want) > 1e-12 {
				t.Errorf("document %d: %s = %v, want %v", i, name, got, want)
			}
		}
	}
	if len(dropped) < 20 {
		t.Errorf("only the rules %v dropped a document", dropped)
	}
}

func TestPIIFindsWhatDatatroveFinds(t *testing.T) {
	for _, c := range readGolden(t).PII {
		d := &Doc{Text: []byte(c.Text)}
		PII().Apply(d)
		got := string(d.Text)
		for _, r := range emailReplacements {
			got = strings.ReplaceAll(got, r, "MAIL")
		}
		for _, r := range ipReplacements {
			got = strings.ReplaceAll(got, r, "IP")
		}
		if got != c.After {
			t.Errorf("%q becomes %q, want %q", c.Text, got, c.After)
		}
	}
}

func (d *Doc) signal(t *testing.T, name string) float64 {
	t.Helper()
	for _, s := range d.Signals {
		if s.Name == name {
			return s.Value
		}
	}
	t.Fatalf("no signal %s in %v", name, d.Signals)
	return 0
}
