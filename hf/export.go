package hf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"anneal/internal/fileio"
	"anneal/safetensors"
)

// Export holds the contents of a model directory except the config.
type Export struct {
	// exactly those of the config's Tensors, in any order; all F32, all BF16 or all F16
	Tensors       []safetensors.Tensor
	TokenizerJSON []byte   // tokenizer.json; the config's special ids must be among its added tokens
	Before, After []uint32 // tokens that TokenizerJSON puts around a text
	ChatTemplate  any      // as from [ChatTemplate]; nil for none
	Card          Card
	MaxShard      int64 // bytes of weights in one file; 0 means 5 GB

	Check func(dir string) error // reads the complete files before they appear; nil checks nothing
}

// Card holds the contents of README.md.
type Card struct {
	Name  string      // heading
	Facts [][2]string // rows of a table: parameters, tokens, loss, …
	Start string      // special tokens that the tokenizer puts before a text; empty for none
}

// Write writes a model directory. dir must be empty or absent; it appears when it is complete and e.Check agrees.
func Write(dir string, c Config, e Export) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("hf: the model cannot be exported:\n%w", err)
	}
	if err := match(c, infos(e.Tensors)); err != nil {
		return fmt.Errorf("hf: the tensors to export do not fit the config:\n  %w", err)
	}
	files, err := texts(c, e)
	if err != nil {
		return err
	}
	if e.MaxShard == 0 {
		e.MaxShard = 5_000_000_000
	}
	tensors := finite(e.Tensors)
	err = fileio.Dir(dir, func(tmp string) error {
		if err := safetensors.WriteDir(tmp, tensors, e.MaxShard); err != nil {
			return err
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(tmp, name), text, 0o644); err != nil {
				return err
			}
		}
		if e.Check != nil {
			return e.Check(tmp)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	return nil
}

func infos(tensors []safetensors.Tensor) []safetensors.Info {
	list := make([]safetensors.Info, len(tensors))
	for i, t := range tensors {
		list[i] = safetensors.Info{Name: t.Name, DType: t.DType, Shape: t.Shape}
	}
	return list
}

// texts renders every file except the weights.
func texts(c Config, e Export) (map[string][]byte, error) {
	dtype, err := dtypeName(e.Tensors)
	if err != nil {
		return nil, err
	}
	vocab, positions := c.size()
	special, err := specialTokens(c.tokens(), vocab, e.TokenizerJSON)
	if err != nil {
		return nil, fmt.Errorf("hf: tokenizer.json: %w", err)
	}
	files := map[string][]byte{
		"tokenizer.json": e.TokenizerJSON,
		"README.md":      []byte(e.Card.markdown()),
	}
	tokenizer := map[string]any{
		// With any other class, transformers 5 rebuilds parts of the tokenizer and ignores tokenizer.json.
		"tokenizer_class":              "PreTrainedTokenizerFast",
		"model_max_length":             positions,
		"clean_up_tokenization_spaces": false,
		"add_prefix_space":             false,
		// the default adds token_type_ids, which these models do not take
		"model_input_names": []string{"input_ids", "attention_mask"},
	}
	for key, token := range special {
		tokenizer[key] = token
	}
	if e.ChatTemplate != nil {
		tokenizer["chat_template"] = e.ChatTemplate
	}
	if bos, eos, ok := e.around(c.tokens()); ok {
		tokenizer["add_bos_token"], tokenizer["add_eos_token"] = bos, eos
	}
	for name, v := range map[string]any{
		"config.json":             configJSON(c, dtype),
		"generation_config.json":  generationJSON(c),
		"tokenizer_config.json":   tokenizer,
		"special_tokens_map.json": special,
	} {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false) // special tokens like <|eos|> stay readable
		enc.SetIndent("", "  ")
		if err := enc.Encode(v); err != nil {
			return nil, fmt.Errorf("hf: %s: %w", name, err)
		}
		files[name] = text.Bytes()
	}
	return files, nil
}

// around returns the settings of tokenizer_config.json that describe the tokens around a text: one at its beginning,
// one at its end. Programs that convert models read these; transformers reads tokenizer.json. ok is false if the
// settings cannot describe them.
func (e Export) around(t Tokens) (bos, eos, ok bool) {
	is := func(ids []uint32, token int) bool { return len(ids) == 1 && int(ids[0]) == token }
	bos, eos = is(e.Before, t.BOS), len(t.EOS) > 0 && is(e.After, t.EOS[0])
	return bos, eos, (bos || len(e.Before) == 0) && (eos || len(e.After) == 0)
}

// dtypeName returns PyTorch's name of the dtype that all tensors have.
func dtypeName(tensors []safetensors.Tensor) (string, error) {
	names := map[safetensors.DType]string{
		safetensors.F32: "float32", safetensors.BF16: "bfloat16", safetensors.F16: "float16",
	}
	first := tensors[0] // a model that matched its config has tensors
	name, ok := names[first.DType]
	if !ok {
		return "", fmt.Errorf("hf: tensor %q is %s; weights are exported as F32, BF16 or F16", first.Name, first.DType)
	}
	for _, t := range tensors {
		if t.DType != first.DType {
			return "", fmt.Errorf("hf: tensor %q is %s and %q is %s; all must have one dtype",
				first.Name, first.DType, t.Name, t.DType)
		}
	}
	return name, nil
}

// configJSON returns the config of the model with the settings that every model has. It gives the dtype under the keys
// of transformers 4 and 5.
func configJSON(c Config, dtype string) map[string]any {
	m := c.settings()
	m["torch_dtype"], m["dtype"], m["transformers_version"] = dtype, dtype, writtenFor
	c.tokens().put(m)
	return m
}

func generationJSON(c Config) map[string]any {
	m := map[string]any{"_from_model_config": true, "transformers_version": writtenFor}
	c.tokens().put(m)
	return m
}

func (t Tokens) put(m map[string]any) {
	m["bos_token_id"], m["eos_token_id"], m["pad_token_id"] = idOrNull(t.BOS), idsOrNull(t.EOS), idOrNull(t.Pad)
}

func idOrNull(id int) any {
	if id < 0 {
		return nil
	}
	return id
}

func idsOrNull(ids []int) any {
	switch len(ids) {
	case 0:
		return nil
	case 1:
		return ids[0]
	}
	return ids
}

// float is written with a point or an exponent, because transformers 5 checks that floats are not integers.
type float float64

// MarshalJSON writes the shortest form that is a float in Python too.
func (f float) MarshalJSON() ([]byte, error) {
	s := strconv.FormatFloat(float64(f), 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return []byte(s), nil
}

// usage is the Python call that gives the same answer as `anneal generate` at temperature 0.
// bench/peers/check_greedy.py runs it.
func (k Card) usage() string {
	start := "The tokenizer puts nothing around a text."
	if k.Start != "" {
		start = "The tokenizer starts a text with `" + k.Start + "`."
	}
	return "\n" + start + " This call continues it greedily, with the tokens that\n" +
		"`anneal generate RUN --temperature 0` makes in fp32:\n\n" +
		"```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n" +
		"tokenizer = AutoTokenizer.from_pretrained(\".\")\n" +
		"model = AutoModelForCausalLM.from_pretrained(\".\").float()\n" +
		"inputs = tokenizer(\"Once\", return_tensors=\"pt\")\n" +
		"outputs = model.generate(**inputs, max_new_tokens=50, do_sample=False)\n" +
		"print(tokenizer.decode(outputs[0], skip_special_tokens=True))\n```\n"
}

func (k Card) markdown() string {
	var b strings.Builder
	b.WriteString("---\nlibrary_name: transformers\npipeline_tag: text-generation\n---\n\n")
	name := strings.Join(strings.Fields(k.Name), " ")
	if name == "" {
		name = "A language model"
	}
	fmt.Fprintf(&b, "# %s\n\nTrained with anneal.\n", name)
	if len(k.Facts) > 0 {
		b.WriteString("\n| | |\n|---|---|\n")
		cell := strings.NewReplacer("|", `\|`, "\n", " ")
		for _, f := range k.Facts {
			fmt.Fprintf(&b, "| %s | %s |\n", cell.Replace(f[0]), cell.Replace(f[1]))
		}
	}
	b.WriteString(k.usage())
	return b.String()
}
