package tokenizer

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files in testdata were made by the tokenizers and tiktoken libraries: testdata/make_golden.py.

type goldenFile struct {
	Texts []string
	IDs   map[string][][]uint32
}

func golden(t *testing.T) (g goldenFile) {
	t.Helper()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func mustLoad(t testing.TB, path string) *Tokenizer {
	t.Helper()
	tok, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// checkGolden fails where encode gives other ids than the golden ones of that name.
func checkGolden(t *testing.T, name string, encode func([]byte) []uint32) {
	t.Helper()
	g := golden(t)
	if len(g.IDs[name]) != len(g.Texts) || len(g.Texts) < 100 {
		t.Fatalf("%s: %d golden results for %d texts", name, len(g.IDs[name]), len(g.Texts))
	}
	for i, text := range g.Texts {
		if got := encode([]byte(text)); !slices.Equal(got, g.IDs[name][i]) {
			t.Errorf("%s: text %q:\n got  %d\n want %d", name, text, got, g.IDs[name][i])
		}
	}
}

var goldenPatterns = map[string]string{
	"gpt2": "gpt2", "cl100k": "cl100k", "llama3": "llama3", "digits": `\p{N}| ?[^\p{N}\s]+|\s`,
}

func TestEncodeMatchesHuggingFace(t *testing.T) {
	for name, pattern := range goldenPatterns {
		tok := mustLoad(t, "testdata/hf_"+name+".json")
		if tok.Pattern() != pattern {
			t.Errorf("hf_%s.json has the pattern %q, want %q", name, tok.Pattern(), pattern)
		}
		checkGolden(t, name, tok.EncodeSpecial)
	}
}

func TestTrainMatchesHuggingFace(t *testing.T) {
	corpus, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, pattern := range goldenPatterns {
		want := mustLoad(t, "testdata/hf_"+name+".json")
		got := mustTrain(t, TrainOptions{VocabSize: 600, Pattern: pattern}, string(corpus))
		if d := cmp.Diff(mergeNames(want), mergeNames(got)); d != "" {
			t.Errorf("%s: merges (- library, + ours):\n%s", name, d)
		}
		if got.VocabSize() != want.VocabSize() {
			t.Errorf("%s: vocabulary of %d, the library's has %d", name, got.VocabSize(), want.VocabSize())
		}
	}
}

// edit returns the tokenizer.json at path with a change made to it.
func edit(t testing.TB, path string, change func(doc map[string]any)) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	change(doc)
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustRead(t testing.TB, data []byte) *Tokenizer {
	t.Helper()
	tok, err := Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestIgnoreMergesMatchesHuggingFace(t *testing.T) {
	for name, ignore := range map[string]bool{"fewer_merges": false, "fewer_merges_ignored": true} {
		tok := mustRead(t, edit(t, "testdata/hf_llama3.json", func(doc map[string]any) {
			model := doc["model"].(map[string]any)
			var kept []any
			for i, m := range model["merges"].([]any) {
				if i%3 != 0 {
					kept = append(kept, m)
				}
			}
			model["merges"], model["ignore_merges"] = kept, ignore
		}))
		checkGolden(t, name, tok.EncodeSpecial)
	}
}

// An added token that merges form too keeps its id: its text, the form in the file, is found first, and merges make it
// of the text that it stands for, which it is decoded to. The ids are those of tokenizers 0.23.
func TestAddedTokensMayBeFormedByMerges(t *testing.T) {
	added := func(special bool) []byte {
		return edit(t, "testdata/hf_llama3.json", func(doc map[string]any) {
			list := doc["added_tokens"].([]any)
			for id, text := range map[int]string{263: "in", 299: "Ġthe"} {
				list = append(list, map[string]any{"id": id, "content": text, "special": special})
			}
			doc["added_tokens"] = list
		})
	}
	tok := mustRead(t, added(false))
	var saved bytes.Buffer
	if _, err := tok.WriteTo(&saved); err != nil {
		t.Fatal(err)
	}
	again := mustRead(t, saved.Bytes())
	if tok.Hash() != again.Hash() {
		t.Error("saved and read again, the tokenizer has another hash")
	}
	for text, want := range map[string][]uint32{
		"Ġthe thing in the inn": {299, 262, 263, 71, 221, 263, 299, 221, 263, 78}, "xĠthex": {88, 299, 88},
	} {
		for _, tok := range []*Tokenizer{tok, again} {
			got := tok.NewEncoder().Encode(nil, []byte(text))
			decoded := string(tok.Decode(nil, got))
			if !slices.Equal(got, want) || decoded != strings.ReplaceAll(text, "Ġ", " ") {
				t.Errorf("%q: ids %d, want %d; decoded %q", text, got, want, decoded)
			}
		}
	}
	if _, err := Read(bytes.NewReader(added(true))); err == nil || !strings.Contains(err.Error(), `"special": true`) {
		t.Errorf("special tokens that merges form: %v", err)
	}
}

func TestMergesMayBeStringsOrPairs(t *testing.T) {
	want := mustLoad(t, "testdata/hf_gpt2.json")
	got := mustRead(t, edit(t, "testdata/hf_gpt2.json", func(doc map[string]any) {
		model := doc["model"].(map[string]any)
		lines := []any{"#version: 0.2"}
		for _, m := range model["merges"].([]any) {
			pair := m.([]any)
			lines = append(lines, pair[0].(string)+" "+pair[1].(string))
		}
		model["merges"] = lines
	}))
	if got.Hash() != want.Hash() {
		t.Errorf("merges as strings: hash %s, as pairs %s", got.Hash(), want.Hash())
	}
}

func TestEncodeMatchesTiktoken(t *testing.T) {
	data, err := os.ReadFile("testdata/ranks.tiktoken")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := ReadTiktoken(bytes.NewReader(data), "cl100k", map[string]uint32{"<|endoftext|>": 700})
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "tiktoken", tok.EncodeSpecial)
	e := tok.NewEncoder()
	checkGolden(t, "tiktoken_ordinary", func(text []byte) []uint32 { return e.Encode(nil, text) })
	if tok.VocabSize() != 701 || tok.Token(650) != nil {
		t.Errorf("vocabulary of %d with token 650 = %q; want 701 and a gap", tok.VocabSize(), tok.Token(650))
	}
}

func TestSaveKeepsTheTokenizer(t *testing.T) {
	ranks, err := os.ReadFile("testdata/ranks.tiktoken")
	if err != nil {
		t.Fatal(err)
	}
	fromRanks, err := ReadTiktoken(bytes.NewReader(ranks), "cl100k",
		map[string]uint32{"<|a b\"\\\n|>": 700, "<|c|>": 650})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*Tokenizer{"trained": sample(), "from ranks": fromRanks}
	for name := range goldenPatterns {
		all[name] = mustLoad(t, "testdata/hf_"+name+".json")
	}
	path := t.TempDir() + "/tokenizer.json"
	text := []byte("The words <|c|> they'll say: 12345\n\n\treturn nil <|endoftext|> <|a b\"\\\n|>")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		tok := all[name]
		if err := tok.Save(path); err != nil {
			t.Fatal(err)
		}
		got := mustLoad(t, path)
		if got.Hash() != tok.Hash() || got.Pattern() != tok.Pattern() || got.VocabSize() != tok.VocabSize() {
			t.Errorf("%s: came back as %s, %s, %d tokens; was %s, %s, %d", name,
				got.Hash(), got.Pattern(), got.VocabSize(), tok.Hash(), tok.Pattern(), tok.VocabSize())
		}
		if d := cmp.Diff(tok.Specials(), got.Specials()); d != "" {
			t.Errorf("%s: special tokens (- before, + after):\n%s", name, d)
		}
		if a, b := tok.EncodeSpecial(text), got.EncodeSpecial(text); !slices.Equal(a, b) {
			t.Errorf("%s: %d before, %d after", name, a, b)
		}
	}
	left, err := os.ReadDir(strings.TrimSuffix(path, "/tokenizer.json"))
	if err != nil || len(left) != 1 {
		t.Errorf("Save left %v (%v), want tokenizer.json alone", left, err)
	}
}

func TestPostProcessorIsKept(t *testing.T) {
	const template = `{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{}}`
	tok := mustRead(t, edit(t, "testdata/hf_llama3.json", func(doc map[string]any) {
		doc["post_processor"] = json.RawMessage(template)
	}))
	var out bytes.Buffer
	if _, err := tok.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Post map[string]any `json:"post_processor"`
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Post["type"] != "TemplateProcessing" {
		t.Errorf("post_processor came back as %v", doc.Post)
	}
}
