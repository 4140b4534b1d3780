package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// interchange.json was made by the tokenizers and tiktoken libraries: testdata/make_interchange.py.
type interchangeFile struct {
	Texts    []string
	Variants map[string]struct {
		Fields map[string]any
		IDs    []digest
		Plain  []digest // with special tokens in the texts left alone; nil if none were added
	}
	Written map[string]struct {
		Files map[string]string
		IDs   []digest
	}
}

// digest is a number of ids and the start of a hash of them.
type digest struct {
	n    int
	hash string
}

func (d *digest) UnmarshalJSON(v []byte) error { return json.Unmarshal(v, &[]any{&d.n, &d.hash}) }

func digestOf(ids []uint32) digest {
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, ids)
	return digest{len(ids), hex.EncodeToString(h.Sum(nil))[:16]}
}

func interchange(t *testing.T) (f interchangeFile) {
	t.Helper()
	data, err := os.ReadFile("testdata/interchange.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func checkDigests(t *testing.T, name string, texts []string, want []digest, encode func([]byte) []uint32) {
	t.Helper()
	if len(want) != len(texts) || len(texts) < 100 {
		t.Fatalf("%s: %d results for %d texts", name, len(want), len(texts))
	}
	faults := 0
	for i, text := range texts {
		if ids := encode([]byte(text)); digestOf(ids) != want[i] {
			if faults++; faults <= 3 {
				t.Errorf("%s: text %+q gives %d ids %d, the library has %v", name, text, len(ids), ids, want[i])
			}
		}
	}
	if faults > 3 {
		t.Errorf("%s: and %d more", name, faults-3)
	}
}

// encodeAround does what the tokenizers library does by default: special tokens by their text, and those around a
// text.
func encodeAround(tok *Tokenizer) func([]byte) []uint32 {
	before, after := tok.Around()
	return func(text []byte) []uint32 { return slices.Concat(before, tok.EncodeSpecial(text), after) }
}

// plainly leaves special tokens in a text alone.
func plainly(tok *Tokenizer) func([]byte) []uint32 {
	e := tok.NewEncoder()
	return func(text []byte) []uint32 { return e.Encode(nil, text) }
}

// Every kind of file that is accepted means what it means to the tokenizers library, and still does when it is written
// again.
func TestVariantsMatchHuggingFace(t *testing.T) {
	f := interchange(t)
	for _, name := range slices.Sorted(maps.Keys(f.Variants)) {
		v := f.Variants[name]
		tok := mustRead(t, edit(t, "testdata/hf_llama3.json", func(doc map[string]any) { maps.Copy(doc, v.Fields) }))
		checkDigests(t, name, f.Texts, v.IDs, encodeAround(tok))
		again := mustRead(t, []byte(written(t, tok)))
		if again.Hash() != tok.Hash() {
			t.Errorf("%s: the hash changed on the way through a file", name)
		}
		checkDigests(t, name+", written", f.Texts, v.IDs, encodeAround(again))
		if v.Plain != nil {
			checkDigests(t, name+", plain", f.Texts, v.Plain, plainly(tok))
		}
	}
}

// trainedOn is a tokenizer of 600 tokens from testdata/corpus.txt.
func trainedOn(t *testing.T, pattern string) *Tokenizer {
	t.Helper()
	corpus, err := os.ReadFile("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	return mustTrain(t, TrainOptions{VocabSize: 600, Pattern: pattern}, string(corpus))
}

// The files that are written give the same ids in the libraries that read them. With ANNEAL_WRITE_TO set, it writes
// them there for make_interchange.py.
func TestLibrariesReadWhatIsWritten(t *testing.T) {
	dir := os.Getenv("ANNEAL_WRITE_TO")
	if dir == "" {
		dir = t.TempDir()
	}
	f := interchange(t)
	toks := map[string]*Tokenizer{}
	for name, c := range map[string]struct {
		pattern string
		save    func(tok *Tokenizer, dir string) error
	}{
		"gpt2": {"gpt2", (*Tokenizer).SaveGPT2},
		"tiktoken": {"o200k",
			func(tok *Tokenizer, dir string) error { return tok.SaveTiktoken(filepath.Join(dir, "own.tiktoken")) }},
		"hf nanochat": {"nanochat", (*Tokenizer).SaveHF},
		"hf gpt2":     {"gpt2", (*Tokenizer).SaveHF},
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o777); err != nil {
			t.Fatal(err)
		}
		tok := trainedOn(t, c.pattern)
		toks[name] = tok
		if err := c.save(tok, path); err != nil {
			t.Fatal(err)
		}
	}
	for name, tok := range toks {
		want := f.Written[name]
		encode := tok.EncodeSpecial
		if name == "tiktoken" {
			encode = plainly(tok)
		}
		checkDigests(t, name, f.Texts, want.IDs, encode)
		for file, hash := range want.Files {
			data, err := os.ReadFile(filepath.Join(dir, name, file))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != hash {
				t.Errorf("%s: %s is not the file that the library read: run make_interchange.py", name, file)
			}
		}
	}
}

// The name of a special token is found in text however it is matched; an added token is no special one.
func TestNamesOfSpecialTokensAreFound(t *testing.T) {
	for _, c := range []struct {
		marks map[string]any
		want  string
	}{
		{nil, "<|endoftext|>"}, {map[string]any{"normalized": true}, "<|endoftext|>"},
		{map[string]any{"special": false}, ""},
	} {
		tok := mustRead(t, edit(t, "testdata/hf_llama3.json", func(doc map[string]any) {
			maps.Copy(doc["added_tokens"].([]any)[0].(map[string]any), c.marks)
		}))
		if got := tok.FindSpecial([]byte("one<|endoftext|>two")); got != c.want {
			t.Errorf("with %v: %q, want %q", c.marks, got, c.want)
		}
	}
}

// The token that ends a text is never found in text, even if its file does not call it special.
func TestTextNeverEndsItself(t *testing.T) {
	tok := mustRead(t, edit(t, "testdata/hf_llama3.json", func(doc map[string]any) {
		doc["added_tokens"].([]any)[0].(map[string]any)["special"] = false
	}))
	end, err := tok.EndOfText()
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("one<|endoftext|>two")
	if ids := tok.NewEncoder().Encode(nil, text); slices.Contains(ids, end) {
		t.Errorf("text yields %d", ids)
	}
	if ids := tok.EncodeSpecial(text); !slices.Contains(ids, end) {
		t.Errorf("text in which special tokens count yields %d", ids)
	}
}

// vocab.json with merges.txt cannot hold a token that no merge makes, and readers skip lines that begin with #version.
func TestWhatMergesTxtCannotHoldIsNotWritten(t *testing.T) {
	half := edit(t, "testdata/hf_gpt2.json", func(doc map[string]any) {
		model := doc["model"].(map[string]any)
		merges := model["merges"].([]any)
		model["merges"] = merges[:len(merges)-1]
	})
	err := mustRead(t, half).SaveGPT2(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "not what the merges") {
		t.Errorf("without the last merge: %v", err)
	}
	text := strings.Repeat("#version ", 50) + strings.Repeat("#versioning ", 20)
	tok := mustTrain(t, TrainOptions{VocabSize: 280, Pattern: `\S+|\s+`}, text)
	if err := tok.SaveGPT2(t.TempDir()); err == nil || !strings.Contains(err.Error(), `"#version`) {
		t.Errorf("with merges of #version…: %v", err)
	}
}

// What is written is read back, in every format.
func TestFormatsComeBack(t *testing.T) {
	f := interchange(t)
	dir := t.TempDir()
	for _, name := range []string{"gpt2", "o200k", "qwen2"} {
		tok := trainedOn(t, name)
		if err := tok.SaveGPT2(dir); err != nil {
			t.Fatal(err)
		}
		got, err := Open(dir, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Hash() != tok.Hash() {
			t.Errorf("%s by vocab.json and merges.txt: hash %s, was %s", name, got.Hash(), tok.Hash())
		}
		dir := t.TempDir()
		path := filepath.Join(dir, "ranks.tiktoken")
		if err := tok.SaveTiktoken(path); err != nil {
			t.Fatal(err)
		}
		end, _ := tok.EndOfText()
		ranks, err := Open(dir, name, map[string]uint32{"<|endoftext|>": end})
		if err != nil {
			t.Fatal(err)
		}
		var again bytes.Buffer
		if err := ranks.WriteTiktoken(&again); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, again.Bytes()) {
			t.Errorf("%s: the rank file came back as another (%v)", name, err)
		}
		for _, text := range f.Texts {
			if a, b := tok.EncodeSpecial([]byte(text)), ranks.EncodeSpecial([]byte(text)); !slices.Equal(a, b) {
				t.Errorf("%s: text %q gives %d, by ranks %d", name, text, a, b)
			}
		}
	}
	if err := trainedOn(t, "gpt2").SaveHF(dir); err != nil {
		t.Fatal(err)
	}
	var config struct {
		EOS     string                    `json:"eos_token"`
		Decoder map[string]map[string]any `json:"added_tokens_decoder"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &config); err != nil || config.EOS != "<|endoftext|>" ||
		config.Decoder["599"]["content"] != "<|endoftext|>" {
		t.Errorf("tokenizer_config.json is %s (%v)", data, err)
	}
}
