package curate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/dedup"

	"pgregory.net/rapid"
)

// apply returns the text that a filter leaves, its numbers by name, and its verdict.
func apply(f *Filter, text string) (string, map[string]float64, Verdict) {
	d := &Doc{}
	d.SetText([]byte(text))
	v := f.Apply(d)
	numbers := map[string]float64{}
	for _, s := range d.Signals {
		numbers[strings.TrimPrefix(s.Name, f.Name+".")] = s.Value
	}
	return string(d.Text), numbers, v
}

func TestIdentifiersAreFoundAndOthersLeftAlone(t *testing.T) {
	for _, c := range []struct{ text, kind string }{
		{"call +49 30 901820 now", "phones"},
		{"call +1 (415) 555-2671.", "phones"},
		{"+442079460958", "phones"},
		{"GB29 NWBK 6016 1331 9268 19", "ibans"},
		{"pay to FR1420041010050500013M02606, please", "ibans"},
		{"card 4012 8888 8888 1881", "cards"},
		{"378282246310005", "cards"},
		{"from 2606:4700:4700::1111 came", "ipv6"},
		{"see 2a00:1450:4001:81b::200e: it", "ipv6"},
		{"key=AKIAABCDEFGHIJKLMNOP", "keys"},
		{"ghp_abcdefghijklmnopqrstuvwxyz0123456789", "keys"},
		{"a+12", ""}, {"+1234567", ""}, {"x = +1234567890123456", ""}, {"1+442079460958x", ""},
		{"GB29 NWBK 6016 1331 9268 18", ""}, // check digits
		{"XGB29NWBK60161331926819", ""},
		{"4012 8888 8888 1882", ""}, {"0.4012888888881881", ""}, {"4012888888881881.5", ""}, {"4444444444444444", ""},
		{"1234567890123456789", ""}, {"std::2001::x", ""}, {"12:34:56", ""}, {"fe80::1", ""}, {"2001:db8::5", ""},
		{"2001:0db8:85a3::8a2e:0370:7334", ""}, {"a2001:4860::1", ""},
		{"AKIAABC", ""}, {"AKIAABCDEFGHIJKLMNOPQ", ""}, {"ghx_abcdefghijklmnopqrstuvwxyz0123456789", ""},
	} {
		after, numbers, _ := apply(Identifiers(), c.text)
		for name, n := range numbers {
			if (n != 0) != (name == c.kind) {
				t.Errorf("%q: %v %s, want %q", c.text, n, name, c.kind)
			}
		}
		if (after != c.text) != (c.kind != "") {
			t.Errorf("%q became %q", c.text, after)
		}
	}
}

// Words, digits and dates behind a number neither hide it nor go with it.
func TestIdentifiersEndBeforeWhatFollows(t *testing.T) {
	for _, c := range []struct{ before, number, after string }{
		{"IBAN ", "DE89370400440532013000", " BIC COBADEFFXXX"},
		{"IBAN: ", "DE89 3704 0044 0532 0130 00", " BIC: COBADEFFXXX"},
		{"IBAN ", "GB29 NWBK 6016 1331 9268 19", " SWIFT NWBKGB2L"},
		{"", "DE89370400440532013000", " EUR"},
		{"card ", "4012 8888 8888 1881", " 12/25"},
		{"", "4012888888881881", " 123"},
		{"call ", "+1 415 555 2671", " 2024-05-01"},
		{"call ", "+1 415 555 2671", " 10 times"},
		{"call ", "+33 1 23 45 67 89", " 2024-05-01"},
		{"call ", "+44 20 7946 0958", " 2nd floor"},
		{"call ", "+49 30 901820", " 10 times"},
		{"", "+90 212 123 45 67", " 4012 8888"},
		{"3 14 15 92 65 35 89 79 32 38 46 26 43 38 32", "", ""},
	} {
		after, numbers, _ := apply(Identifiers(), c.before+c.number+c.after)
		found, ok := strings.CutPrefix(strings.TrimSuffix(after, c.after), c.before)
		sum := 0.0
		for _, n := range numbers {
			sum += n
		}
		if known := slices.ContainsFunc(identifiers[:], func(k identifier) bool {
			return slices.Contains(k.from, found)
		}); !ok || known != (c.number != "") || known != (sum == 1) {
			t.Errorf("%q became %q (%v)", c.before+c.number+c.after, after, numbers)
		}
	}
}

// The same number becomes the same in every text, and a second pass changes nothing.
func TestIdentifiersTwiceAreOnce(t *testing.T) {
	pieces := []string{"+49 30 901820", "+44 20 7946 0958", "GB29 NWBK 6016 1331 9268 19", "4012 8888 8888 1881",
		"2606:4700:4700::1111", "AKIAABCDEFGHIJKLMNOP", " ", "\n", ".", ": ", "word", "7", "é", "+", "(", "2001::",
		"GB", "4012 "}
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 30).Draw(rt, "pieces"), "")
		once, _, _ := apply(Identifiers(), text)
		twice, numbers, _ := apply(Identifiers(), once)
		if once != twice {
			rt.Fatalf("%q became %q, then %q (%v)", text, once, twice, numbers)
		}
	})
	a, _, _ := apply(Identifiers(), "x +49 30 901820")
	b, _, _ := apply(Identifiers(), "y +49 30 901820")
	if a[1:] != b[1:] {
		t.Errorf("one number became %q and %q", a, b)
	}
}

func FuzzIdentifiers(f *testing.F) {
	f.Add([]byte("GB29 NWBK 6016 1331 9268 19 4012 8888 8888 1881 +49 30 901820 2606:4700:4700::1111"))
	f.Fuzz(func(t *testing.T, text []byte) { apply(Identifiers(), string(text)) })
}

func TestNFCComposes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"e\u0301 caf\u00e9", "\u00e9 caf\u00e9"}, {"plain", "plain"}, {"\u1100\u1161", "\uac00"},
		{"bad \xff e\u0301", "bad \xff \u00e9"},
		// the library would put something in between
		{"x" + strings.Repeat("\u0301", 60), "x" + strings.Repeat("\u0301", 60)},
	} {
		after, numbers, v := apply(NFC(), c.text)
		if after != c.want || v.Drop || (numbers["changed"] == 1) != (c.text != c.want) {
			t.Errorf("%q became %q (%v), want %q", c.text, after, numbers, c.want)
		}
	}
}

// evalFile writes items as lines of JSON.
func evalFile(t testing.TB, items ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "eval.jsonl")
	var b bytes.Buffer
	for _, item := range items {
		fmt.Fprintf(&b, "{\"text\": %q}\n", item)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// words makes n words that no other call makes.
func someWords(r *rand.Rand, n int) string {
	w := make([]string, n)
	for i := range w {
		w[i] = fmt.Sprintf("w%c%c%c%c", 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26), 'a'+r.IntN(26))
	}
	return strings.Join(w, " ")
}

// A document is found iff it holds 13 words in a row of an item, or a short item whole, by a naive search over
// strings.
func TestDecontaminateFindsWhatANaiveSearchFinds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		r := rand.New(rand.NewPCG(seed, 1))
		var items []string
		for range 5 {
			items = append(items, someWords(r, 6+r.IntN(20)))
		}
		set, err := ReadEvalSet([]string{evalFile(t, items...)}, EvalOptions{NGram: 13, Shortest: 8})
		if err != nil {
			rt.Skip() // all are too short
		}
		doc := strings.Fields(someWords(r, 60))
		from := strings.Fields(items[r.IntN(len(items))])
		n := min(len(from), 5+r.IntN(20))
		start := r.IntN(len(from) - n + 1)
		doc = slices.Concat(doc[:20], from[start:start+n], doc[20:])

		want, hits := 0, 0
		for _, item := range items {
			w := strings.Fields(item)
			if len(w) < 8 {
				continue
			}
			n, found := min(13, len(w)), 0
			for i := 0; i+n <= len(w); i++ {
				found += strings.Count(strings.Join(doc, " ")+" ", strings.Join(w[i:i+n], " ")+" ")
			}
			if found > 0 {
				want++
				hits += found
			}
		}
		text := strings.ToUpper(strings.Join(doc, ",\n"))
		_, numbers, v := apply(Decontaminate(set), text)
		if numbers["items"] != float64(want) || numbers["runs"] != float64(hits) || v.Drop != (hits > 0) {
			rt.Fatalf("seed %d: %v, dropped %v; a naive search finds %d items, %d runs",
				seed, numbers, v.Drop, want, hits)
		}
	})
}

func TestDecontaminateNamesTheItem(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	items := []string{someWords(r, 30), "too short", someWords(r, 9), ""}
	path := evalFile(t, items...)
	set, err := ReadEvalSet([]string{path}, EvalOptions{NGram: 13, Shortest: 8})
	if err != nil {
		t.Fatal(err)
	}
	_, numbers, _ := apply(Decontaminate(set), "before "+items[2]+" after "+items[0])
	if numbers["hit "+path+":1"] != 18 || numbers["hit "+path+":3"] != 1 {
		t.Errorf("hits %v, want 18 of item 1 and 1 of item 3", numbers)
	}
	if _, numbers, v := apply(Decontaminate(set), "nothing of too short or any other item stands here"); v.Drop ||
		numbers["runs"] != 0 {
		t.Errorf("clean text: %v, dropped %v", numbers, v.Drop)
	}
}

func TestCleaningStagesInAPipeline(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	item := someWords(r, 20)
	list := filepath.Join(t.TempDir(), "bad.txt")
	if err := os.WriteFile(list, []byte("foul\nvery rude words\n\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	p := mustParse(t, fmt.Sprintf("stages:\n  - nfc\n  - identifiers\n  - bad_words: {list: %q}\n"+
		"  - decontaminate: {against: [%q]}\n", list, evalFile(t, item)))
	for _, c := range []struct{ text, rule string }{
		{"a clean text, foully written", ""},
		{"that is FOUL!", "bad_words.found"},
		{"some Very - rude\nwords here", "bad_words.found"},
		{"very rude word", ""},
		{"look: " + item, "decontaminate.runs"},
	} {
		d := &Doc{}
		d.SetText([]byte(c.text))
		rule := ""
		for _, s := range p.NewStages() {
			if v := s.Apply(d); v.Drop && rule == "" {
				rule = v.Rule
			}
		}
		if rule != c.rule {
			t.Errorf("%q: dropped by %q, want %q", c.text, rule, c.rule)
		}
	}
	for _, c := range []struct{ yaml, want string }{
		{"bad_words", "needs list"},
		{"decontaminate: {against: [nowhere.jsonl]}", "nowhere.jsonl"},
		{fmt.Sprintf("decontaminate: {against: [%q], ngram: 0}", list), "ngram is 0"},
		{fmt.Sprintf("decontaminate: {against: [%q], ngram: 2.7, shortest: 1}", list), "ngram is 2.7"},
		{fmt.Sprintf("decontaminate: {against: [%q], ngram: 7}", list), "ngram 7 is below shortest 8"},
		{fmt.Sprintf("decontaminate: {against: [%q]}", list), "no item of at least 8 words"},
		{fmt.Sprintf("decontaminate: {against: [%q], field: question}", evalFile(t, item)), "or name theirs"},
		{fmt.Sprintf("bad_words: {list: %q}", evalFile(t, strings.Repeat("x ", 40))), "more than 16"},
	} {
		if _, err := Parse([]byte("stages:\n  - "+c.yaml), "p.yaml"); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.yaml, err, c.want)
		}
	}
}

func BenchmarkCleaning(b *testing.B) {
	docs, size := benchText(b)
	r := rand.New(rand.NewPCG(5, 6))
	var items []string
	for range 2000 {
		items = append(items, someWords(r, 60))
	}
	set, err := ReadEvalSet([]string{evalFile(b, items...)}, EvalOptions{NGram: 13, Shortest: 8})
	if err != nil {
		b.Fatal(err)
	}
	list, words := newPhrases(), dedup.Words{}
	for _, item := range items {
		w := words.Hashes([]byte(item))
		list.add(w[:1], 1, 0)
		list.add(w[:2], 2, 0)
	}
	for _, f := range []*Filter{Identifiers(), NFC(), BadWords(&WordList{list}), Decontaminate(set)} {
		b.Run(f.Name, func(b *testing.B) {
			b.SetBytes(size)
			var d Doc
			for b.Loop() {
				for _, text := range docs {
					d.Signals = d.Signals[:0]
					d.SetText(text)
					f.Apply(&d)
				}
			}
		})
	}
}
