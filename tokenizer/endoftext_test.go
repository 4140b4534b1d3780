package tokenizer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ends returns the text of the token that ends a text, or the error.
func ends(tok *Tokenizer) string {
	id, err := tok.EndOfText()
	if err != nil {
		return err.Error()
	}
	return string(tok.Token(id))
}

// A file that holds null says nothing, and is filled in.
func TestEndOfTextIsWrittenOverNull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tok.json")
	if err := os.WriteFile(configPath(path), []byte("null"), 0o644); err != nil {
		t.Fatal(err)
	}
	tok := mustTrain(t, TrainOptions{VocabSize: 300, Special: []string{"<a>", "<b>"}}, "text")
	if err := tok.Save(path); err != nil {
		t.Fatal(err)
	}
	if tok, err := Load(path); err != nil || ends(tok) != "<a>" {
		t.Errorf("%v", err)
	}
}

// What ends a text is decided by the caller, the files beside the tokenizer, or the names of its special tokens, in
// this order; a doubt is an error that names the tokens.
func TestEndOfText(t *testing.T) {
	config, special := "tokenizer_config.json", "special_tokens_map.json"
	for name, c := range map[string]struct {
		specials []string
		files    map[string]string
		said     string
		want     string // the token, or what the error holds
	}{
		"known name": {[]string{"<pad>", "<|endoftext|>", "<|im_end|>"}, nil, "", "<|endoftext|>"},
		"DeepSeek": {[]string{"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"}, nil, "",
			"<｜end▁of▁sentence｜>"},
		"only one": {[]string{"<fin>"}, nil, "", "<fin>"},
		"config": {[]string{"<|endoftext|>", "<|im_end|>"},
			map[string]string{config: `{"eos_token": "<|im_end|>"}`}, "", "<|im_end|>"},
		"config before map": {[]string{"<a>", "<b>"},
			map[string]string{config: `{"eos_token": "<a>"}`, special: `{"eos_token": "<b>"}`}, "", "<a>"},
		"map": {[]string{"<a>", "<b>"},
			map[string]string{config: `{"eos_token": null}`, special: `{"eos_token": "<b>"}`}, "", "<b>"},
		"object": {[]string{"<a>", "<b>"},
			map[string]string{config: `{"eos_token": {"content": "<b>", "lstrip": false}}`}, "", "<b>"},
		"said before config": {[]string{"<a>", "<b>"}, map[string]string{config: `{"eos_token": "<a>"}`},
			"<b>", "<b>"},
		"said before broken": {[]string{"<a>", "<b>"}, map[string]string{config: `{`}, "<b>", "<b>"},
		"none":               {[]string{}, nil, "", "has no special token"},
		"several": {[]string{"<a>", "<b>", "<c>"}, nil, "", "has <a>, <b> and <c>, " +
			"and nothing says which of them ends a text\n  name it with --end-of-text TOKEN, or as \"eos_token\" in "},
		"several names": {[]string{"<a>", "</s>", "<eos>"}, nil, "", "has </s> and <eos>, and nothing"},
		"config of another": {[]string{"<|endoftext|>"}, map[string]string{config: `{"eos_token": "</s>"}`}, "",
			`eos_token is "</s>", which is not a special token`},
		"config that is broken": {[]string{"<|endoftext|>"}, map[string]string{config: `{"eos_token": `}, "",
			"tokenizer_config.json, which names the token that ends a text"},
		"config of another kind": {[]string{"<|endoftext|>"}, map[string]string{config: `{"eos_token": 7}`}, "",
			"eos_token is 7, neither"},
	} {
		path := filepath.Join(t.TempDir(), "tokenizer.json")
		if err := mustTrain(t, TrainOptions{VocabSize: 300, Special: c.specials}, "text").writeHF(path); err != nil {
			t.Fatal(err)
		}
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		tok, err := Load(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err) // what ends a text concerns only who asks for it
		}
		if c.said != "" {
			if err := tok.SetEndOfText(c.said); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := ends(tok); got != c.want && (!strings.Contains(got, c.want) || strings.HasPrefix(c.want, "<")) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestEndOfTextThatIsNoSpecialToken(t *testing.T) {
	tok := mustTrain(t, TrainOptions{VocabSize: 300}, "text text text")
	for _, token := range []string{"text", "a", "", "</s>"} {
		if err := tok.SetEndOfText(token); err == nil || !strings.Contains(err.Error(), "it has <|endoftext|>") {
			t.Errorf("%q: %v", token, err)
		}
	}
	if got := ends(tok); got != "<|endoftext|>" {
		t.Errorf("then it is %s", got)
	}
	none := mustTrain(t, TrainOptions{VocabSize: 300, Special: []string{}}, "text")
	if _, err := none.EndOfText(); !errors.Is(err, ErrNoEndOfText) {
		t.Errorf("without special tokens: %v", err)
	}
}

// The first special token of a vocabulary that is learned ends a text, in every form it is saved in.
func TestFirstSpecialTokenEndsAText(t *testing.T) {
	for _, specials := range [][]string{
		{"<|endoftext|>"}, {"<|eod|>", "<|endoftext|>"}, {"<fin>", "<pad>"}, {"<pad>", "</s>"},
		{"<｜end▁of▁sentence｜>", "<x>"}, {"<|im_end|>"},
	} {
		tok := mustTrain(t, TrainOptions{VocabSize: 300, Special: specials}, "a b c")
		small, err := tok.Cut(290)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for _, save := range []struct {
			form, path string
			write      func(string) error
		}{
			{"tok.json", filepath.Join(dir, "tok.json"), tok.Save}, {"HF", dir, tok.SaveHF},
			{"cut", filepath.Join(dir, "cut", "tok.json"),
				func(path string) error { return errors.Join(os.Mkdir(filepath.Dir(path), 0o777), small.Save(path)) }},
		} {
			if err := save.write(save.path); err != nil {
				t.Fatal(err)
			}
			back, err := Open(save.path, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := ends(back); got != specials[0] {
				t.Errorf("%q as %s: %s ends a text", specials, save.form, got)
			}
		}
	}
}

// The file beside a tokenizer is written only where it is needed, never kept with what another one said, and keeps its
// other members.
func TestEndOfTextBesideATokenizer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tok.json")
	config := filepath.Join(filepath.Dir(path), "tok_config.json")
	save := func(specials ...string) string {
		t.Helper()
		if err := mustTrain(t, TrainOptions{VocabSize: 300, Special: specials}, "a b").Save(path); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(config)
		return string(text)
	}
	if got := save("<|endoftext|>", "<a>"); got != "" {
		t.Errorf("a name that says it has the file %s", got)
	}
	if got := save("<a>", "<b>"); got != "{\n  \"eos_token\": \"<a>\"\n}\n" {
		t.Errorf("the file is %s", got)
	}
	if err := os.WriteFile(config, []byte(`{"eos_token": "<a>", "model_max_length": 1000000000000000019884624838656}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	if got := save("<|endoftext|>"); got != "{\n  \"eos_token\": \"<|endoftext|>\",\n"+
		"  \"model_max_length\": 1000000000000000019884624838656\n}\n" {
		t.Errorf("the file is %s", got)
	}
}

// A hash is of the mapping from text to ids, in which the end of text has no part.
func TestEndOfTextIsNotInTheHash(t *testing.T) {
	tok := mustTrain(t, TrainOptions{VocabSize: 300, Special: []string{"<a>", "<b>"}}, "a b")
	before := tok.Hash()
	if err := tok.SetEndOfText("<b>"); err != nil {
		t.Fatal(err)
	}
	if tok.Hash() != before {
		t.Error("the hash has changed")
	}
}

func FuzzEOSToken(f *testing.F) {
	for _, seed := range []string{
		`{"eos_token":"</s>"}`, `{"eos_token":{"content":"</s>"}}`, `{"eos_token":null}`, `{}`, `[]`,
		`{"eos_token":[1]}`, `{"eos_token":{"content":7}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		if token, err := eosToken(config); err != nil && token != "" {
			t.Errorf("%q with %v", token, err)
		}
	})
}
