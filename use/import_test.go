package use

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"anneal/gguf"
	"anneal/run"
)

// edited changes the object in a JSON file.
func edited(t *testing.T, path string, change func(object map[string]any)) {
	t.Helper()
	object := objectIn(t, path)
	change(object)
	text, err := json.Marshal(object)
	if err == nil {
		err = os.WriteFile(path, append([]byte("\ufeff"), text...), 0o666) // as some editors begin a file
	}
	if err != nil {
		t.Fatal(err)
	}
}

func objectIn(t *testing.T, path string) (object map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return object
}

// An imported model is exported with the special tokens and the chat template of its source, also from a run that was
// derived from it, and each end of a text that the source names ends one.
func TestImportsKeepSpecialTokens(t *testing.T) {
	r := exported(t, "model.vocab=384")
	home := t.TempDir()
	src, dir, derived, out := filepath.Join(home, "src"), filepath.Join(home, "run"), filepath.Join(home, "derived"),
		filepath.Join(home, "out")
	if _, err := r.ExportHF(src, "F32"); err != nil {
		t.Fatal(err)
	}
	end, n := r.end(), r.Tokenizer.VocabSize()
	edited(t, filepath.Join(src, "tokenizer.json"), func(tok map[string]any) {
		added := tok["added_tokens"].([]any)
		for i, text := range []string{"<|pad|>", "<|end|>", "<|stop|>"} {
			token := maps.Clone(added[0].(map[string]any))
			token["id"], token["content"] = n+i, text
			added = append(added, token)
		}
		tok["added_tokens"] = added
	})
	edited(t, filepath.Join(src, "config.json"), func(c map[string]any) {
		c["eos_token_id"], c["pad_token_id"], c["bos_token_id"] = []any{end, n + 1}, n, nil
	})
	edited(t, filepath.Join(src, "generation_config.json"), func(c map[string]any) { c["eos_token_id"] = n + 2 })
	edited(t, filepath.Join(src, "tokenizer_config.json"), func(c map[string]any) {
		c["chat_template"] = "{{ a }}<b>"
	})
	if _, err := run.ImportHF(src, dir, ""); err != nil {
		t.Fatal(err)
	}
	imported, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer imported.Close()
	for id := range int32(n + 3) {
		if want := id == end || int(id) > n; imported.ends(id) != want {
			t.Errorf("token %d ends a text: %v", id, imported.ends(id))
		}
	}
	if _, err := imported.WriteAs(derived, "test"); err != nil {
		t.Fatal(err)
	}
	again, err := Open(derived, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.ExportHF(out, "F32"); err != nil {
		t.Fatal(err)
	}
	c := objectIn(t, filepath.Join(out, "config.json"))
	texts := objectIn(t, filepath.Join(out, "tokenizer_config.json"))
	want := []any{float64(end), float64(n + 1), float64(n + 2)}
	if !reflect.DeepEqual(c["eos_token_id"], any(want)) || c["pad_token_id"] != float64(n) ||
		c["bos_token_id"] != nil || texts["pad_token"] != "<|pad|>" || texts["chat_template"] != "{{ a }}<b>" {
		t.Errorf("came back with %v, %v, %v, %v and %v", c["eos_token_id"], c["pad_token_id"], c["bos_token_id"],
			texts["pad_token"], texts["chat_template"])
	}
	file := filepath.Join(home, "out.gguf")
	if _, err := again.ExportGGUF(file, gguf.F32); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	has := map[string]any{}
	for _, kv := range f.Metadata() {
		has[strings.TrimPrefix(kv.Key, "tokenizer.")] = kv.Value
	}
	for key, want := range map[string]any{
		"ggml.eos_token_id": uint32(end), "ggml.eot_token_id": uint32(n + 1), "ggml.eom_token_id": uint32(n + 2),
		"ggml.padding_token_id": uint32(n), "chat_template": "{{ a }}<b>",
	} {
		if has[key] != want {
			t.Errorf("llama.cpp's file has %s = %v, want %v", key, has[key], want)
		}
	}
}

// What an import cannot use is refused before the weights are read.
func TestImportsReadTheTokenizerFirst(t *testing.T) {
	src := filepath.Join(t.TempDir(), "src")
	if _, err := exported(t).ExportHF(src, "F32"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokenizer.json", "model.safetensors"} {
		if err := os.Remove(filepath.Join(src, name)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := run.ImportHF(src, filepath.Join(t.TempDir(), "run"), "")
	if err == nil || !strings.Contains(err.Error(), "has no tokenizer.json") {
		t.Errorf("without a tokenizer and weights: %v", err)
	}
}
