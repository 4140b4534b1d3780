package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"anneal/internal/filetest"
)

// Whatever a file asks for that is not done here is refused, and the error names the field.
func TestReadRefusesWhatItCannotRepresent(t *testing.T) {
	type object = map[string]any
	model := func(doc object) object { return doc["model"].(object) }
	vocab := func(doc object) object { return model(doc)["vocab"].(object) }
	sequence := func(parts ...any) object { return object{"type": "Sequence", "pretokenizers": parts} }
	split := func(change func(object)) object {
		s := object{"type": "Split", "pattern": object{"Regex": `\d+`}, "behavior": "Isolated", "invert": false}
		change(s)
		return s
	}
	bytesOnly := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
	splitBy := func(regex string) func(object) {
		return func(d object) {
			d["pre_tokenizer"] = sequence(split(func(s object) { s["pattern"] = object{"Regex": regex} }), bytesOnly)
		}
	}
	for name, c := range map[string]struct {
		want   string // in the error
		change func(doc object)
	}{
		"normalizer": {"NFKC", func(d object) { d["normalizer"] = object{"type": "NFKC"} }},
		"two normalizers": {"normalizer", func(d object) {
			d["normalizer"] = object{
				"type": "Sequence", "normalizers": []any{object{"type": "NFC"}, object{"type": "NFC"}},
			}
		}},
		"prepended": {"normalizer",
			func(d object) { d["normalizer"] = object{"type": "Prepend", "prepend": "_"} }},
		"post-processor": {"post_processor", func(d object) { d["post_processor"] = object{"type": "Other"} }},
		"template without text": {"post_processor.single", func(d object) {
			d["post_processor"] = object{"type": "TemplateProcessing", "single": []any{}, "pair": []any{},
				"special_tokens": object{}}
		}},
		"template with an unknown token": {"does not have \"[CLS]\"", func(d object) {
			d["post_processor"] = object{"type": "TemplateProcessing", "pair": []any{}, "special_tokens": object{},
				"single": []any{object{"SpecialToken": object{"id": "[CLS]", "type_id": 0}},
					object{"Sequence": object{"id": "A", "type_id": 0}}}}
		}},
		"nested post-processors": {"Sequence", func(d object) {
			d["post_processor"] = object{"type": "Sequence",
				"processors": []any{object{"type": "Sequence", "processors": []any{}}}}
		}},
		"nested normalizers": {"normalizer", func(d object) {
			d["normalizer"] = object{
				"type": "Sequence", "normalizers": []any{object{"type": "Sequence", "normalizers": []any{}}},
			}
		}},
		"token of a template": {"no token 7000", func(d object) {
			d["post_processor"] = object{"type": "BertProcessing", "sep": []any{"x", 7000}, "cls": []any{"y", 1}}
		}},
		"truncation":    {"truncation", func(d object) { d["truncation"] = object{"max_length": 5} }},
		"padding":       {"padding", func(d object) { d["padding"] = object{} }},
		"unknown field": {"postprocess", func(d object) { d["postprocess"] = 1 }},
		"other model":   {"model.type", func(d object) { model(d)["type"] = "Unigram" }},
		"dropout":       {"model.dropout", func(d object) { model(d)["dropout"] = 0.1 }},
		"suffix":        {"end_of_word_suffix", func(d object) { model(d)["end_of_word_suffix"] = "</w>" }},
		"prefix": {"continuing_subword_prefix",
			func(d object) { model(d)["continuing_subword_prefix"] = "##" }},
		"unknown in model": {"model.scores", func(d object) { model(d)["scores"] = []any{} }},
		"decoder":          {"decoder", func(d object) { d["decoder"] = object{"type": "WordPiece"} }},
		"no pre-tokenizer": {"pre_tokenizer", func(d object) { d["pre_tokenizer"] = nil }},
		"other splitting":  {"Whitespace", func(d object) { d["pre_tokenizer"] = object{"type": "Whitespace"} }},
		"prefix space": {"add_prefix_space",
			func(d object) { d["pre_tokenizer"] = object{"type": "ByteLevel", "add_prefix_space": true} }},
		"no splitting": {"use_regex", func(d object) { d["pre_tokenizer"] = bytesOnly }},
		"behavior": {"behavior", func(d object) {
			d["pre_tokenizer"] = sequence(split(func(s object) { s["behavior"] = "Removed" }), bytesOnly)
		}},
		"invert": {"invert", func(d object) {
			d["pre_tokenizer"] = sequence(split(func(s object) { s["invert"] = true }), bytesOnly)
		}},
		"merged": {"MergedWithNext", func(d object) {
			d["pre_tokenizer"] = sequence(split(func(s object) {
				s["behavior"], s["pattern"] = "MergedWithNext", object{"String": " "}
			}), bytesOnly)
		}},
		"no pattern": {"pattern", func(d object) {
			d["pre_tokenizer"] = sequence(split(func(s object) { s["pattern"] = object{} }), bytesOnly)
		}},
		"bad pattern":                   {"is not usable", splitBy("(a")},
		"endless pattern":               {"matching fails", splitBy(`(\s+)+x`)},
		"endless pattern of one letter": {"matching fails", splitBy(`(z+)+$`)},
		"class in a class":              {"classes in classes", splitBy(`[[:alpha:]]+`)},
		"intersection":                  {"intersections", splitBy(`[^]a-z&&\p{L}]`)},
		"no minimum":                    {"try {0,", splitBy(`a{,2}`)},
		"flag m":                        {"flag m", splitBy(`(?im:a.)`)},
		"plus after a count":            {"a + after a count", splitBy(`\p{N}{1,3}+|\p{L}+`)},
		"tiktoken's cl100k": {"a + after a count", splitBy(`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|` +
			`\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`)},
		"huge pattern": {"16 KiB", splitBy(strings.Repeat("a", 1<<15))},
		"two ByteLevel": {"pretokenizers[0]",
			func(d object) { d["pre_tokenizer"] = sequence(bytesOnly, bytesOnly) }},
		"no part":         {"pretokenizers", func(d object) { d["pre_tokenizer"] = sequence() }},
		"many parts":      {"pretokenizers", func(d object) { d["pre_tokenizer"] = sequence(make([]any, 17)...) }},
		"odd added token": {"added_tokens[0]", func(d object) { d["added_tokens"].([]any)[0].(object)["score"] = 1 }},
		"empty special": {"special token 600",
			func(d object) { d["added_tokens"] = []any{object{"id": 600, "content": ""}} }},
		"special id": {"added_tokens", func(d object) { d["added_tokens"].([]any)[0].(object)["id"] = 5 }},
		"special twice": {"id 0 of another",
			func(d object) { d["added_tokens"] = append(d["added_tokens"].([]any), d["added_tokens"].([]any)[0]) }},
		"huge special id": {"4294967",
			func(d object) { d["added_tokens"] = []any{object{"id": 4294967295, "content": "<x>"}} }},
		"huge id":           {"id", func(d object) { vocab(d)["zzz"] = 4000000000 }},
		"far id":            {"there are only", func(d object) { vocab(d)["zzz"] = 1 << 23 }},
		"negative id":       {"id", func(d object) { vocab(d)["zzz"] = -1 }},
		"fractional id":     {"id", func(d object) { vocab(d)["zzz"] = 1.5 }},
		"id not a number":   {"id", func(d object) { vocab(d)["zzz"] = "7" }},
		"duplicate id":      {"id 300", func(d object) { vocab(d)["zzz"] = 300 }},
		"not byte-level":    {"byte-level", func(d object) { vocab(d)["a b"] = 600 }},
		"empty token":       {"byte-level", func(d object) { vocab(d)[""] = 600 }},
		"missing byte":      {"0x61", func(d object) { delete(vocab(d), "a"); model(d)["merges"] = []any{} }},
		"unknown in merges": {"model.merges[1]", func(d object) { model(d)["merges"].([]any)[1] = []any{"q", "qqq"} }},
		"unknown result":    {"model.merges[1]", func(d object) { model(d)["merges"].([]any)[1] = []any{"q", "q"} }},
		"added in merges": {"model.merges[1]", func(d object) {
			d["added_tokens"] = []any{object{"id": 600, "content": "日"}}
			model(d)["merges"].([]any)[1] = []any{"日", "q"}
		}},
		"merge of three": {"model.merges[1]",
			func(d object) { model(d)["merges"].([]any)[1] = []any{"q", "q", "q"} }},
		"merge of one":    {"model.merges[1]", func(d object) { model(d)["merges"].([]any)[1] = "qq" }},
		"merge no text":   {"model.merges[1]", func(d object) { model(d)["merges"].([]any)[1] = []any{"q", 1} }},
		"merges no array": {"array", func(d object) { model(d)["merges"] = 7 }},
		"vocab no object": {"object", func(d object) { model(d)["vocab"] = []any{} }},
		"model no object": {"object", func(d object) { d["model"] = "BPE" }},
		"no vocab":        {"vocab", func(d object) { delete(model(d), "vocab") }},
		"special as token": {"601 in added_tokens",
			func(d object) { d["added_tokens"] = []any{object{"id": 601, "content": "Ġ"}} }},
	} {
		_, err := Read(bytes.NewReader(edit(t, "testdata/hf_llama3.json", c.change)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
}

func TestReadRefusesBrokenJSON(t *testing.T) {
	data, err := os.ReadFile("testdata/hf_gpt2.json")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(data); n += 1 + n/37 {
		if _, err := Read(bytes.NewReader(data[:n])); err == nil {
			t.Errorf("the first %d bytes of %d were read without an error", n, len(data))
		}
	}
	twice := bytes.Replace(data, []byte(`"vocab":{`), []byte(`"vocab":{"!":1,`), 1)
	if _, err := Read(bytes.NewReader(twice)); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a token with two ids: error %v", err)
	}
	for _, text := range []string{"[]", "7", "null", `"x"`, "{}", `{"model":{}}`, strings.Repeat("[", 1<<20)} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%.20q was read without an error", text)
		}
	}
}

func TestReadAcceptsCommonVariants(t *testing.T) {
	type object = map[string]any
	for name, change := range map[string]func(doc object){
		"empty normalizer": func(d object) { d["normalizer"] = object{"type": "Sequence", "normalizers": []any{}} },
		"no decoder":       func(d object) { d["decoder"] = nil },
		"inverted": func(d object) {
			s := d["pre_tokenizer"].(object)["pretokenizers"].([]any)[0].(object)
			s["behavior"], s["invert"] = "Removed", true
		},
		"special only added": func(d object) { delete(d["model"].(object)["vocab"].(object), "<|endoftext|>") },
		"unknown token set":  func(d object) { d["model"].(object)["unk_token"] = "<|endoftext|>" },
	} {
		tok := mustRead(t, edit(t, "testdata/hf_llama3.json", change))
		if want := mustLoad(t, "testdata/hf_llama3.json"); tok.Hash() != want.Hash() {
			t.Errorf("%s: changes the hash", name)
		}
	}
}

func TestReadTiktokenRefusesBrokenFiles(t *testing.T) {
	var all strings.Builder
	for b := range 256 {
		fmt.Fprintf(&all, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(b)}), b)
	}
	if _, err := ReadTiktoken(strings.NewReader(all.String()), "cl100k", nil); err != nil {
		t.Fatalf("256 bytes: %v", err)
	}
	for name, extra := range map[string]string{
		"not base64": "?? 256\n", "no rank": "YWI=\n", "rank not a number": "YWI= x\n",
		"huge rank": "YWI= 4294967295\n", "far rank": "YWI= 9999999\n", "same rank": "YWI= 7\n",
		"same token": "YQ== 256\n", "empty token": " 256\n",
		"long token": base64.StdEncoding.EncodeToString(make([]byte, 2000)) + " 256\n",
		"long line":  strings.Repeat("A", 1<<17),
	} {
		if _, err := ReadTiktoken(strings.NewReader(all.String()+extra), "cl100k", nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := ReadTiktoken(strings.NewReader(""), "cl100k", nil); err == nil {
		t.Error("empty file: no error")
	}
	if _, err := ReadTiktoken(strings.NewReader(all.String()), "cl100k", map[string]uint32{"<x>": 3}); err == nil {
		t.Error("special token with the id of a byte: no error")
	}
}

// checkAccepted fails where read takes memory out of proportion to size, or where what it accepts does not work:
// encode, decode and come back from a file.
func checkAccepted(t *testing.T, size int, text []byte, read func() (*Tokenizer, error)) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tok, err := read()
	runtime.ReadMemStats(&after)
	// 3 MiB: the tables that every tokenizer has, and those of Unicode.
	if used, most := after.TotalAlloc-before.TotalAlloc, uint64(3<<20+250*size); used > most {
		t.Fatalf("%d bytes allocated for a file of %d, want at most %d", used, size, most)
	}
	if err != nil {
		return
	}
	text = append([]byte("it's <x> 12\n\n"), text[:min(len(text), 200)]...)
	ids := tok.NewEncoder().Encode(nil, text)
	if got := tok.Decode(nil, ids); !bytes.Equal(got, tok.normalize(nil, text)) {
		t.Fatalf("text %q came back as %q", text, got)
	}
	tok.EncodeSpecial(text)
	var out bytes.Buffer
	if _, err := tok.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out.Bytes()) {
		t.Fatalf("wrote broken JSON: %s", out.Bytes())
	}
	if again := mustRead(t, out.Bytes()); again.Hash() != tok.Hash() {
		t.Fatal("the hash changed on the way through a file")
	}
}

// FuzzReadTiktoken feeds ReadTiktoken hostile rank files.
func FuzzReadTiktoken(f *testing.F) {
	var all bytes.Buffer
	for b := range 256 {
		fmt.Fprintf(&all, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(b)}), b)
	}
	for _, extra := range []string{
		"", "YWI= 256\nYWJj 257\n", "YWI= 400\n\n", "YWI= 16777215\n", "=\n", "YWI=", "YWI= 256 7\n",
	} {
		f.Add(filetest.Splice(all.Len(), 0, extra))
	}
	f.Fuzz(func(t *testing.T, edits []byte) {
		data := filetest.Edit(t, all.Bytes(), edits)
		checkAccepted(t, len(data), data, func() (*Tokenizer, error) {
			return ReadTiktoken(bytes.NewReader(data), "o200k", map[string]uint32{"<x>": 300})
		})
	})
}

// FuzzReadGPT2 feeds ReadGPT2 hostile pairs of files.
func FuzzReadGPT2(f *testing.F) {
	small := map[string]int{"<|endoftext|>": 259, "ab": 256, "Ġab": 257, "x y": 258}
	for i, b := range byteOrder {
		small[string(byteRune[b])] = i
	}
	vocab, err := json.Marshal(small)
	if err != nil {
		f.Fatal(err)
	}
	for _, merges := range []string{
		"#version: 0.2\na b\nĠ ab\n", "a b\r\n\r\nĠ ab", "a\n", "a b c\n", "a z\n", " b\n", "a b\na b\n",
	} {
		f.Add([]byte{}, []byte(merges))
		f.Add(filetest.Splice(len(vocab)/2, 1<<16-1, ""), []byte(merges))
	}
	f.Add(filetest.Splice(0, 1<<16-1, `{"a":1,"a":1}`), []byte(""))
	f.Fuzz(func(t *testing.T, edits, merges []byte) {
		if len(merges) > 64 {
			t.Skip("long files take long to minimize")
		}
		vocab := filetest.Edit(t, vocab, edits)
		checkAccepted(t, len(vocab)+len(merges), merges, func() (*Tokenizer, error) {
			return ReadGPT2(bytes.NewReader(vocab), bytes.NewReader(merges), "", map[string]uint32{"<x>": 300})
		})
	})
}

// Thousands of parts within each other are refused, or read in memory that goes by the size of the file.
func TestDeeplyNestedParts(t *testing.T) {
	for key, list := range map[string]string{
		"post_processor": "processors", "normalizer": "normalizers", "pre_tokenizer": "pretokenizers",
	} {
		open := `{"type":"Sequence","` + list + `":[`
		data := []byte(`{"` + key + `":` + strings.Repeat(open, 3000) + strings.Repeat("]}", 3000) + "}")
		checkAccepted(t, len(data), data, func() (*Tokenizer, error) { return Read(bytes.NewReader(data)) })
	}
}

// FuzzRead feeds Read hostile files.
func FuzzRead(f *testing.F) {
	var files [][]byte
	for _, name := range []string{"gpt2", "llama3", "digits"} {
		small := edit(f, "testdata/hf_"+name+".json", func(doc map[string]any) {
			model := doc["model"].(map[string]any)
			model["merges"] = model["merges"].([]any)[:3]
			for token, id := range model["vocab"].(map[string]any) {
				if id.(float64) > 259 {
					delete(model["vocab"].(map[string]any), token)
				}
			}
		})
		files = append(files, small, bytes.Replace(small, []byte(`:259`), []byte(`:16000000`), 1))
	}
	files = append(files, []byte(
		`{"added_tokens":[{"id":4000000000,"content":"<x>"}],"model":{"vocab":{"a":1,"a":1},"merges":[["a","b"]]}}`))
	for i := range files {
		f.Add(uint8(i), []byte{})
	}
	f.Add(uint8(0), filetest.Splice(len(files[0])/2, 1<<16-1, ""))
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		data := filetest.Edit(t, files[int(which)%len(files)], edits)
		checkAccepted(t, len(data), data, func() (*Tokenizer, error) { return Read(bytes.NewReader(data)) })
	})
}

// FuzzAddedTokens feeds the reader of GPT-2's files hostile files of added tokens.
func FuzzAddedTokens(f *testing.F) {
	vocab := map[string]int{}
	for i, b := range byteOrder {
		vocab[string(byteRune[b])] = i
	}
	text, err := json.Marshal(vocab)
	if err != nil {
		f.Fatal(err)
	}
	dir := filetest.MemoryDir(f)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "vocab.json"), text, 0o666),
		os.WriteFile(filepath.Join(dir, "merges.txt"), nil, 0o666)); err != nil {
		f.Fatal(err)
	}
	for _, added := range []string{
		`{"<x>":256,"<y>":257}`, `{"<x>":3}`, `{"":300}`, `{"a":300}`, `{"<x>":-1}`, `{"<x>":4294967295}`,
		`{"<x>":256,"<y>":256}`, `null`, `[]`,
	} {
		f.Add([]byte(added))
	}
	f.Fuzz(func(t *testing.T, added []byte) {
		if len(added) > 64 {
			t.Skip("long files take long to minimize")
		}
		if err := os.WriteFile(filepath.Join(dir, "added_tokens.json"), added, 0o666); err != nil {
			t.Fatal(err)
		}
		checkAccepted(t, len(text)+len(added), added,
			func() (*Tokenizer, error) { return openGPT2(filepath.Join(dir, "vocab.json"), "", nil) })
	})
}
