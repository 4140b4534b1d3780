package tasks

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dlclark/regexp2/v2"
	"pgregory.net/rapid"
)

// The figures of metrics by hand.
func TestChoicesAreMeasuredByTheirLogLikelihoods(t *testing.T) {
	task := &Task{Output: MultipleChoice}
	for _, name := range []string{"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"} {
		task.metrics = append(task.metrics, metric{name: name})
	}
	ll := func(list ...float64) (r []response) {
		for i, x := range list {
			r = append(r, response{Likelihood: Likelihood{LogProb: x, Greedy: i == 2}})
		}
		return r
	}
	choices := []string{"a", "éé", "long answer"} // 1, 2 and 11 characters; 1, 4 and 11 bytes
	for _, c := range []struct {
		wanted  any
		answers []response
		want    []float64
	}{
		// most likely: the first; per character 0, −1.05, −0.3; per byte −1, −0.525, −0.3; against alone 1, 7.9, 0
		{int64(0), ll(-1, -2.1, -3.3, -2, -10, -3.3), []float64{1, 0, 0, 0, 0}},
		{int64(1), ll(-1, -2.1, -3.3, -2, -10, -3.3), []float64{0, 0, 0, 1, 0}},
		{int64(2), ll(-1, -2.1, -3.3, -2, -10, -3.3), []float64{0, 1, 1, 0, 1}},
		{"éé", ll(-3, -2.1, -44, -2, -10, -3.3), []float64{1, 1, 1, 1, 0}},
		{[]any{int64(0), int64(2)}, ll(-1, -2.1, -3.3, -2, -10, -3.3), []float64{1, 1, 1, 0, 1}},
		{int64(7), ll(-1, -2.1, -3.3, -2, -10, -3.3), []float64{0, 0, 0, 0, 0}},
		{true, ll(-2, -1, -3.3, -2, -1, -3.3), []float64{1, 0, 1, 0, 0}},
		{int64(0), ll(-1, -1, -11, -1, -1, -11), []float64{1, 0, 0, 1, 0}}, // of equal ones the first
	} {
		got, _, err := task.measures(&question{choices: choices, wanted: c.wanted}, c.answers, pipeline{})
		for i, m := range got {
			if err != nil || m.value != c.want[i] {
				t.Errorf("%v of %v: %s is %v, want %v", c.wanted, c.answers, task.metrics[i].name, m.value, c.want[i])
			}
		}
	}
}

func TestWordsAreCountedAsPythonSplits(t *testing.T) {
	task := &Task{Output: Rolling, metrics: []metric{{name: "word_perplexity"}, {name: "bits_per_byte"}}}
	for text, words := range map[string]float64{"": 1, "a": 1, "a b": 2, " a\n\tb\u00a0c ": 5, "é\x1cè": 2} {
		q := &question{requests: []request{{continuation: text}}}
		got, _, err := task.measures(q, []response{{Likelihood: Likelihood{LogProb: -3}}}, pipeline{})
		if err != nil || got[0] != (measure{-3, words}) || got[1] != (measure{-3, float64(len(text))}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// A figure over items is its definition, with s/√n for a mean.
func TestFiguresAndTheirStandardErrors(t *testing.T) {
	items := []measure{{1, 1}, {0, 1}, {1, 1}, {1, 1}}
	if v, s := aggregate("acc", items); v != 0.75 || math.Abs(s-0.25) > 1e-12 {
		t.Errorf("mean %v ± %v", v, s)
	}
	if _, s := aggregate("acc", items[:1]); !math.IsNaN(s) {
		t.Errorf("one item has the standard error %v", s)
	}
	lls := []measure{{-2, 4}, {-4, 8}, {-6, 6}}
	for metric, want := range map[string]float64{
		"word_perplexity": math.Exp(12.0 / 18), "bits_per_byte": 12.0 / 18 / math.Ln2,
	} {
		if v, s := aggregate(metric, lls); math.Abs(v-want) > 1e-12 || !(s > 0) {
			t.Errorf("%s %v ± %v, want %v", metric, v, s, want)
		}
	}
	// A bootstrap of exp(−mean) is, for small deviations, the value times s/√n·√((n−1)/n).
	var many []measure
	for i := range 400 {
		many = append(many, measure{-1 + 0.1*math.Sin(float64(i)), 1})
	}
	mean, stderr := meanOf(many)
	v, s := aggregate("perplexity", many)
	if math.Abs(v-math.Exp(-mean)) > 1e-12 || math.Abs(s/(v*stderr)-1) > 0.1 {
		t.Errorf("perplexity %v ± %v, of a mean ± %v", v, s, stderr)
	}
}

func TestFiltersDoWhatReDoes(t *testing.T) {
	e := &entry{key: "filter", file: "x"}
	re := func(pattern string, group int) pipeline {
		r, err := compile(e, pattern)
		if err != nil {
			t.Fatal(err)
		}
		return pipeline{"x", []step{{function: "regex", regex: r, group: group, fallback: "[none]"}}}
	}
	for _, c := range []struct {
		p          pipeline
		text, want string
	}{
		{re(`\d+`, 0), "a 12 b 34", "12"}, {re(`\d+`, -1), "a 12 b 34", "34"}, {re(`\d+`, 5), "a 12", "[none]"},
		{re(`is (\d+)`, 0), "it is 7", "7"}, {re(`(a)|(b)`, 1), "a b", "b"}, {re(`x`, 0), "a", "[none]"},
		{re(`a{,2}b`, 0), "aab", "aab"}, {re(`[{,]a`, 0), "{a", "{a"}, {re(`(\d+)\Z`, 0), "1\n", "[none]"},
		{re(`(?P<n>a+)-(?P=n)`, 0), "aa-aa", "aa"}, {re(`[]\]a{,2}]+\\Z`, 0), `]a,\Z`, `]a,\Z`},
		{re(`(a)?(b)?$`, 0), "c", "[none]"}, {re(` \w+ `, 0), "a b c", "b"},
		{pipeline{"x", []step{{function: "lowercase"}, {function: "remove_whitespace"}}}, " É ", "é"},
		{pipeline{"x", []step{{function: "uppercase"}}}, "straße", "STRASSE"},
		{pipeline{"x", []step{{function: "lowercase"}}}, "ΑΣ", "ας"},
	} {
		if got, err := c.p.apply(c.text); err != nil || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.text, got, err, c.want)
		}
	}
	x := exact{letters: true, signs: true, numbers: true, ignore: []*regexp2.Regexp{re(`,\s*b`, 0).steps[0].regex}}
	if got, err := x.normal("A, b: É3!"); err != nil || got != "a é" {
		t.Errorf("%q, %v", got, err)
	}
}

// Each sequence stands once, whole, and beside others; few tokens are wasted. What one shares is at the beginning of
// another in its row.
func TestRowsHoldEachSequenceOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(1, 200).Draw(t, "length")
		packing := Packing{
			Length: length, Alone: rapid.Bool().Draw(t, "alone"), Share: rapid.Bool().Draw(t, "share"),
		}
		var list []Sequence
		for i, n := range rapid.SliceOf(rapid.IntRange(1, length)).Draw(t, "lengths") {
			s := Sequence{IDs: make([]int32, n+1), From: rapid.IntRange(1, n).Draw(t, "from")}
			for j := range s.IDs {
				s.IDs[j] = int32(i)
			}
			if i > 0 && rapid.Bool().Draw(t, "choice") {
				before := list[i-1].IDs
				copy(s.IDs, before[:rapid.IntRange(0, len(before)).Draw(t, "shared")])
				s.Shared = s.shared(list[i-1])
			}
			list = append(list, s)
		}
		rows, total := packing.Rows(list), 0
		seen := map[int]bool{}
		for _, row := range rows {
			at, bunches := 0, 0
			first := Place{}
			for _, p := range row {
				if p.At != at || seen[p.Sequence] || p.Shared > 0 && p.Shared < leastShared {
					t.Fatalf("row %v", row)
				}
				if s := list[p.Sequence]; p.Shared == 0 {
					first = p
					bunches++
				} else if !packing.Share || p.Shared >= s.From || p.Base != first.At ||
					p.Shared >= len(list[first.Sequence].IDs) ||
					!slices.Equal(list[first.Sequence].IDs[:p.Shared], s.IDs[:p.Shared]) {
					t.Fatalf("%v after %v does not begin like it", p, first)
				}
				seen[p.Sequence] = true
				at += len(list[p.Sequence].IDs) - 1 - p.Shared
			}
			total += at
			if packing.Alone && bunches != 1 {
				t.Fatalf("row %v has %d beginnings", row, bunches)
			}
			if at > length {
				t.Fatalf("%d tokens in a row of %d", at, length)
			}
		}
		// of two rows of best-fit decreasing at least one is more than half full, but for the last
		if len(seen) != len(list) || !packing.Alone && len(rows) > 2*total/length+1 {
			t.Fatalf("%d rows for %d tokens, %d of %d sequences", len(rows), total, len(seen), len(list))
		}
	})
}

// Every token of a text is scored once, after as much of what is before it as its row holds.
func TestRowsOfATextScoreEachTokenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := coder{prefix: -1, context: rapid.IntRange(1, 20).Draw(t, "context")}
		var ids []int32
		for i := range rapid.IntRange(0, 100).Draw(t, "tokens") {
			ids = append(ids, int32(i))
		}
		next := int32(0)
		list := c.windows(ids)
		for i, s := range list {
			if len(s.IDs) > c.context+1 || s.From < 1 || i > 0 && len(s.IDs) != c.context+1 {
				t.Fatalf("row %d of %d tokens is %v", i, len(ids), s)
			}
			if s.IDs[0] != next-int32(s.From) {
				t.Fatalf("row %d begins with %d, before %d", i, s.IDs[0], next)
			}
			for _, id := range s.IDs[s.From:] {
				if id != next {
					t.Fatalf("%d is scored, not %d", id, next)
				}
				next++
			}
		}
		if int(next) != len(ids) {
			t.Fatalf("%d of %d are scored", next, len(ids))
		}
	})
}

// Items whose target is none of their choices are counted: no answer to them is right.
func TestItemsWithoutARightChoiceAreNamed(t *testing.T) {
	path := taskFile(t, plain)
	items := `{"question": "a", "choices": ["x", "y"], "answer": 1}
{"question": "b", "choices": ["x", "y"], "answer": 2}
{"question": "c", "choices": ["x", "y"], "answer": -1}
`
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "items.jsonl"), []byte(items), 0o666); err != nil {
		t.Fatal(err)
	}
	set, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	list, all, err := set.Tasks[0].questions(0)
	if err != nil {
		t.Fatal(err)
	}
	second := []response{{}, {Likelihood: Likelihood{LogProb: 1}}}
	a := asked{set.Tasks[0], list, all}
	r, err := a.result([][]response{second, second, second}, Options{})
	if err != nil || !slices.Equal(r.Astray, []int{1, 2}) || math.Abs(float64(r.Metrics[0].Value)-1./3) > 1e-12 {
		t.Errorf("%+v, %v: want items 1 and 2 without a right choice, and a third of them right", r, err)
	}
}

// Items that are drawn as their own examples are counted. With the same test_split and fewshot_split none is.
func TestItemsAmongTheirOwnExamplesAreNamed(t *testing.T) {
	for _, c := range []struct {
		keys string
		some bool
	}{
		{"num_fewshot: 4\n", true}, {"num_fewshot: 4\nfewshot_split: test\n", false}, {"num_fewshot: 0\n", false},
	} {
		set, err := Load(taskFile(t, plain+c.keys))
		if err != nil {
			t.Fatal(err)
		}
		list, all, err := set.Tasks[0].questions(0)
		if err != nil {
			t.Fatal(err)
		}
		a := asked{set.Tasks[0], list, all}
		answers := make([][]response, len(list))
		for i := range answers {
			answers[i] = make([]response, len(list[i].requests))
		}
		r, err := a.result(answers, Options{})
		if err != nil || len(r.Known) > 0 != c.some {
			t.Errorf("%q: items %v are among their own examples, %v", c.keys, r.Known, err)
		}
	}
}
