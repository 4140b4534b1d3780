package interop

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"anneal/config"
	"anneal/device"
	"anneal/gguf"
	"anneal/hf"
	"anneal/internal/floats"
	"anneal/model"
	"anneal/precision"
	"anneal/tokenizer"
)

// Every tensor has llama.cpp's name, by the tables of its own package, and the weights of the Hugging Face model in
// llama.cpp's layout. bench/peers/check_gguf.py runs the files in llama.cpp itself.
func TestGGUFHasTheWeightsOfTheModel(t *testing.T) {
	var want map[string]struct {
		Architecture string            `json:"architecture"`
		Names        map[string]string `json:"names"`
	}
	text, err := os.ReadFile(filepath.Join("testdata", "gguf_names.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	fp32, err := precision.Lookup("fp32")
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{"mistral": true, "windows": true, "qwen2": true} // by their windows
	for name, w := range want {
		was := opened(t, golden(name))
		m, params, err := Load(golden(name), fp32, device.Host{})
		if err != nil {
			t.Fatal(err)
		}
		if c, is := was.Config.(*hf.Gemma3Config); is {
			c.WindowLayers = nil // its windows are refused, and no weight depends on them
		}
		a, err := architectureOf(was.Config, m.Config, "")
		if refused[name] {
			if err == nil || !strings.Contains(err.Error(), "model.attention") {
				t.Errorf("%s: error %v, want one of model.attention", name, err)
			}
			continue
		}
		if err != nil || a.name != w.Architecture {
			t.Errorf("%s: architecture %v, %v; want %s", name, a, err, w.Architecture)
			continue
		}
		g := &GGUF{}
		if err := g.addTensors(m, a, gguf.F32); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := gguf.WriteFile(path, nil, g.Tensors); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := g.Check(f); err != nil || d != 0 {
			t.Errorf("%s: read back, values differ by %v, %v", name, d, err)
		}
		rest := map[string]bool{}
		for _, info := range f.Tensors() {
			rest[info.Name] = true
		}
		for _, spec := range was.Config.Tensors() {
			theirs := w.Names[spec.Name]
			delete(rest, theirs)
			got, at := make([]float32, size(f, theirs)), 0
			if err := f.ReadFloat32(theirs, got, 0); err != nil {
				t.Errorf("%s: %s: %v", name, spec.Name, err)
				continue
			}
			x := arrangedByHand(valuesOf(t, was, spec), spec, w.Architecture, m.Config)
			if i := strings.Index(spec.Name, ".experts."); i >= 0 {
				at = int(spec.Name[i+len(".experts.")]-'0') * len(x)
			}
			if !closeTo(got[at:at+len(x)], x) {
				t.Errorf("%s: %s begins with %v, want %v of %s", name, theirs, got[at:at+2], x[:2], spec.Name)
			}
		}
		delete(rest, "rope_freqs.weight")
		if a.headCopy {
			delete(rest, "output.weight")
		}
		if len(rest) > 0 {
			t.Errorf("%s: the file has also %v", name, rest)
		}
		f.Close()
		params.Close()
	}
}

// closeTo allows the last bit of a gain, of which Hugging Face stores the rest.
func closeTo(got, want []float32) bool {
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 0x1p-22*(1+math.Abs(float64(want[i]))) {
			return false
		}
	}
	return true
}

func size(f *gguf.File, name string) int {
	n := 1
	info, _ := f.Lookup(name)
	for _, d := range info.Shape {
		n *= d
	}
	return n
}

// arrangedByHand lays a Hugging Face weight out for llama.cpp: pairs of rotary rows side by side in the architecture
// llama, [out, in] in gpt2, and whole gains and the scale of scores in Gemmas.
func arrangedByHand(x []float32, spec hf.Spec, arch string, c model.Config) []float32 {
	out := slices.Clone(x)
	cols := len(x) / spec.Shape[0]
	switch {
	case arch == "llama" && (strings.Contains(spec.Name, "q_proj") || strings.Contains(spec.Name, "k_proj")):
		half := c.HeadDim / 2
		for row := range spec.Shape[0] {
			head, side, pair := row/c.HeadDim, row%c.HeadDim/half, row%half
			copy(out[(head*c.HeadDim+2*pair+side)*cols:][:cols], x[row*cols:][:cols])
		}
	case arch == "gpt2" && len(spec.Shape) == 2 && strings.Contains(spec.Name, ".c_"):
		for i := range spec.Shape[0] {
			for j := range cols {
				out[j*spec.Shape[0]+i] = x[i*cols+j]
			}
		}
	case strings.HasPrefix(arch, "gemma"):
		score := float32(1)
		if c.ScoreDim != 0 {
			score = float32(math.Sqrt(float64(c.HeadDim) / float64(c.ScoreDim)))
		}
		for i := range out {
			if len(spec.Shape) == 1 {
				out[i]++
			}
			if arch == "gemma2" && strings.Contains(spec.Name, "q_proj") || strings.Contains(spec.Name, "q_norm") {
				out[i] *= score
			}
		}
	}
	return out
}

// What llama.cpp would compute otherwise is refused by the name of its key.
func TestGGUFRefusesWhatLlamaCppLacks(t *testing.T) {
	llama := config.Default().Model
	llama.KVHeads, llama.HeadDim, llama.FFN, llama.Vocab = 2, 64, 1024, 300
	gemma := llama
	gemma.Family, gemma.Activation, gemma.AttentionSoftcap, gemma.LogitSoftcap, gemma.TieEmbeddings = "gemma2", "geglu",
		50, 30, true
	gemma3 := change(llama, func(c *model.Config) {
		c.Family, c.Activation, c.QKNorm, c.Attention = "gemma3", "geglu", true, seen("window:8,full")
		c.Layers = 2
	})
	for key, c := range map[string]model.Config{
		"activation": change(llama, func(c *model.Config) { c.Family, c.Activation = "anneal", "relu2" }),
		"attention": change(llama, func(c *model.Config) {
			c.Attention, c.QKNorm = seen("window:8,full"), true
		}),
		"attention of gemma2": change(gemma, func(c *model.Config) { c.Attention = seen("full,window:8") }),
		"attention of gemma3": gemma3,
		"family":              change(llama, func(c *model.Config) { c.Family = "phi3" }),
		"attention_softcap":   change(gemma, func(c *model.Config) { c.AttentionSoftcap = 0 }),
		"logit_softcap":       change(gemma, func(c *model.Config) { c.LogitSoftcap = 0 }),
		"tie_embeddings":      change(gemma, func(c *model.Config) { c.TieEmbeddings = false }),
		"rope_scaling": change(llama, func(c *model.Config) {
			c.QKNorm, c.RopeOriginalContext = true, 64
			c.RopeScaling.UnmarshalText([]byte("llama3:4"))
		}),
		"rope_scaling of unusual turns": change(llama, func(c *model.Config) {
			c.QKNorm, c.RopeOriginalContext = true, 64
			c.RopeScaling.UnmarshalText([]byte("yarn:4:slow=0.5"))
		}),
		"normalise_experts": change(llama, func(c *model.Config) {
			c.Family, c.QKNorm, c.Experts, c.ExpertsPerToken, c.ExpertFFN = "qwen3_moe", true, 4, 2, 64
			c.NormaliseExperts = false
		}),
		"head_dim": change(llama, func(c *model.Config) {
			c.Family, c.QKNorm, c.KVHeads, c.HeadDim = "olmo2", true, c.Heads, 32
		}),
	} {
		described, err := ToHF(c, hf.Tokens{BOS: -1, Pad: -1}, "config.yaml:3")
		if err == nil {
			_, err = architectureOf(described, c, "config.yaml:3")
		}
		key, _, _ = strings.Cut(key, " ")
		if p, is := err.(config.Problem); !is || p.Key != "model."+key || p.At != "config.yaml:3" ||
			!strings.Contains(p.Message, "llama.cpp") {
			t.Errorf("%s: error %v", key, err)
		} else if strings.Count(p.Try, ",") >= c.Layers {
			t.Errorf("%s: %q is for more than %d layers", key, p.Try, c.Layers)
		}
	}
}

// llama.cpp reads no turns of YaRN from a file, so unusual ones become a factor of each pair. It scales sines and
// cosines by attn_factor alone then, and by attn_factor times the usual factor if it knows the scaling.
func TestGGUFHasTheTurnsOfYaRN(t *testing.T) {
	c := config.Default().Model
	c.KVHeads, c.HeadDim, c.FFN, c.Vocab, c.RopeOriginalContext = 2, 64, 1024, 300, 64
	for _, x := range []struct {
		scaling string
		kind    any
		factor  float64
		pairs   int
	}{{"yarn:4", "yarn", 1, 0}, {"yarn:4:fast=16:slow=0.5", nil, 1 + 0.1*math.Log(4), 32}} {
		c.RopeScaling.UnmarshalText([]byte(x.scaling))
		described, err := ToHF(c, hf.Tokens{BOS: -1, Pad: -1}, "")
		if err != nil {
			t.Fatal(err)
		}
		a, err := architectureOf(described, c, "")
		if err != nil {
			t.Fatal(err)
		}
		settings := map[string]any{}
		for _, kv := range a.settings {
			settings[kv.Key] = kv.Value
		}
		kind, factor := settings["rope.scaling.type"], settings["rope.scaling.attn_factor"]
		if kind != x.kind || factor != float32(x.factor) || len(a.ropeFactors) != x.pairs {
			t.Errorf("%s: type %v, attn_factor %v, factors %v", x.scaling, kind, factor, a.ropeFactors)
		}
		if f := a.ropeFactors; len(f) > 0 && (f[0] != 1 || f[len(f)-1] != 4) {
			t.Errorf("%s: factors from %v to %v, not from 1 to 4", x.scaling, f[0], f[len(f)-1])
		}
	}
}

// Gemmas with the windows that llama.cpp takes for granted, and without any, are not refused.
func TestGGUFTakesGemmasWithUsualWindows(t *testing.T) {
	c := config.Default().Model
	c.KVHeads, c.HeadDim, c.FFN, c.Vocab = 2, 64, 1024, 300
	c.Family, c.Activation, c.AttentionSoftcap, c.LogitSoftcap, c.TieEmbeddings = "gemma2", "geglu", 50, 30, true
	for _, pattern := range []string{"full", "window:8,full"} {
		c.Attention = seen(pattern)
		described, err := ToHF(c, hf.Tokens{BOS: -1, Pad: -1}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := architectureOf(described, c, ""); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

func change(c model.Config, by func(*model.Config)) model.Config {
	by(&c)
	return c
}

// trained is a tokenizer of a short text.
func trained(t *testing.T, pattern string, special ...string) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Train(t.Context(), tokenizer.TrainOptions{VocabSize: 280, Pattern: pattern, Special: special},
		func(yield func([]byte, error) bool) { yield([]byte("the theme of these 1234 themes\n"), nil) })
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestGGUFTokenizer(t *testing.T) {
	for pattern, want := range map[string]string{"llama3": "smaug-bpe", "gpt2": "gpt-2", "qwen2": "qwen2"} {
		tok := trained(t, pattern, "<|endoftext|>")
		list, notes, err := ggufTokenizer(GGUFText{Tokenizer: tok, Special: Tokens(tok)}, 300)
		if err != nil || len(notes) > 0 {
			t.Fatal(err, notes)
		}
		values := map[string]any{}
		for _, kv := range list {
			values[kv.Key] = kv.Value
		}
		texts, kinds := values["tokenizer.ggml.tokens"].([]string), values["tokenizer.ggml.token_type"].([]int32)
		merges := values["tokenizer.ggml.merges"].([]string)
		eot := values["tokenizer.ggml.eos_token_id"].(uint32)
		switch {
		case values["tokenizer.ggml.pre"] != want:
			t.Errorf("%s is %v, want %s", pattern, values["tokenizer.ggml.pre"], want)
		case texts[220] != "Ġ" || merges[0] != "h e" || texts[256] != "he" || kinds[256] != tokenNormal:
			t.Errorf("%s: tokens %q, merges %q", pattern, texts[220:260], merges)
		case texts[eot] != "<|endoftext|>" || kinds[eot] != tokenControl:
			t.Errorf("%s: %q ends a text, of type %d", pattern, texts[eot], kinds[eot])
		case texts[299] != "[PAD299]" || kinds[299] != tokenUnused:
			t.Errorf("%s: row 299 has no token, but is %q of type %d", pattern, texts[299], kinds[299])
		}
		if _, _, err := ggufTokenizer(GGUFText{Tokenizer: tok}, 100); err == nil {
			t.Error("a model with fewer rows than tokens is accepted")
		}
	}
	for _, c := range []struct{ pattern, special, want string }{
		{"cl100k", "<|endoftext|>", "splits text by cl100k"}, {"o200k", "<|endoftext|>", "--pattern llama3"},
		{"nanochat", "<|endoftext|>", "nanochat"}, {`\w+|\W+`, "<|endoftext|>", "regular expression"},
		{"llama3", "", "no token that ends a text"},
	} {
		special := []string{c.special}
		if c.special == "" {
			special = []string{}
		}
		tok := trained(t, c.pattern, special...)
		if _, _, err := ggufTokenizer(GGUFText{Tokenizer: tok}, 300); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", c.pattern, err, c.want)
		}
	}
}

// The file names each token that ends a text for which llama.cpp has a field, and says which it cannot name.
// llama.cpp finds the text of an added token that merges form, too, unless it would also decode the token to the form
// that it has in files.
func TestGGUFAddedTokensThatMergesForm(t *testing.T) {
	var file bytes.Buffer
	if _, err := trained(t, "llama3", "<|endoftext|>").WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Read(strings.NewReader(strings.Replace(file.String(), `"added_tokens": [`,
		`"added_tokens": [{"id": 256, "content": "he"}, {"id": 258, "content": "Ġthe"},`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := ggufTokenizer(GGUFText{Tokenizer: tok, Special: Tokens(tok)}, 300)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range list {
		if kinds, is := kv.Value.([]int32); is && (kinds[256] != tokenUserDefined || kinds[258] != tokenNormal) {
			t.Errorf("types of added tokens: %d, %d", kinds[256], kinds[258])
		}
	}
}

func TestGGUFSpecialTokens(t *testing.T) {
	for _, c := range []struct {
		is     hf.Tokens
		before []uint32
		want   map[string]uint32
		noted  string
	}{
		{hf.Tokens{BOS: -1, Pad: -1}, nil, map[string]uint32{"bos": 7, "eos": 7}, ""},
		{hf.Tokens{BOS: 1, Pad: -1, EOS: []int{7}}, nil, map[string]uint32{"bos": 1, "eos": 7}, ""},
		{hf.Tokens{BOS: 1, Pad: 0, EOS: []int{8, 7}}, []uint32{2},
			map[string]uint32{"bos": 2, "eos": 7, "eot": 8, "padding": 0}, ""},
		{hf.Tokens{BOS: 1, Pad: -1, EOS: []int{7, 8, 9, 10}}, nil,
			map[string]uint32{"bos": 1, "eos": 7, "eot": 8, "eom": 9}, "token 10"},
	} {
		list, notes := ggufSpecial(c.is, 7, c.before)
		got := map[string]uint32{}
		for _, kv := range list {
			name := strings.TrimSuffix(strings.TrimPrefix(kv.Key, "tokenizer.ggml."), "_token_id")
			got[name] = kv.Value.(uint32)
		}
		if !maps.Equal(got, c.want) || !strings.Contains(strings.Join(notes, ""), c.noted) ||
			(c.noted == "") != (len(notes) == 0) {
			t.Errorf("%+v: %v with notes %q, want %v", c.is, got, notes, c.want)
		}
	}
}

// Chat templates are a text, or a list in which one is the default; what is neither is left out.
func TestGGUFChatTemplates(t *testing.T) {
	named := func(name, text any) any { return map[string]any{"name": name, "template": text} }
	for _, c := range []struct {
		template any
		want     []gguf.KV
	}{
		{nil, nil}, {3, nil}, {[]any{3, named(1, "a"), named("b", 2)}, nil},
		{"{{ a }}", []gguf.KV{{Key: "tokenizer.chat_template", Value: "{{ a }}"}}},
		{[]any{named("tools", "t"), named("default", "d")}, []gguf.KV{
			{Key: "tokenizer.chat_template.tools", Value: "t"}, {Key: "tokenizer.chat_template", Value: "d"},
			{Key: "tokenizer.chat_templates", Value: []string{"tools"}},
		}},
	} {
		if got := ggufChatTemplates(c.template); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v becomes %v, want %v", c.template, got, c.want)
		}
	}
}

// Rounding of numbers that are denormal in F16 is rounding.
func TestGGUFCheckTakesDenormals(t *testing.T) {
	values := make([]float32, 32)
	for i := range values {
		values[i] = float32(i+1) * 0x1.3p-27
	}
	for _, kind := range []gguf.Type{gguf.F16, gguf.BF16, gguf.Q8_0} {
		g := &GGUF{}
		g.add("w", kind, []int{1, 32}, GGUFPart{32, func() floats.Values { return floats.Of(values) }})
		if err := g.encode(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := gguf.WriteFile(path, nil, g.Tensors); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := g.Check(f); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// A tensor that is not what was written is found.
func TestGGUFCheckFindsADifference(t *testing.T) {
	values := []float32{1, 2, 3, 4}
	tensor, err := gguf.Float32("w", gguf.F16, []int{4}, 4, floats.Of([]float32{1, 2, 3, 4.01}))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := gguf.WriteFile(path, nil, []gguf.Tensor{tensor}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g := &GGUF{}
	g.add("w", gguf.F16, []int{4}, GGUFPart{4, func() floats.Values { return floats.Of(values) }})
	if _, err := g.Check(f); err == nil || !strings.Contains(err.Error(), "differs") {
		t.Errorf("error %v", err)
	}
}

// A type that weights cannot have is refused, not replaced by another.
func TestAnUnknownTypeIsRefused(t *testing.T) {
	for _, known := range gguf.Types {
		if n, err := fileTypeOf(known.Type); n != known.FileType || err != nil {
			t.Errorf("%v: %d, %v", known.Type, n, err)
		}
	}
	if _, err := fileTypeOf(2); err == nil || !strings.Contains(err.Error(), "type 2\n  try f32") {
		t.Errorf("q4_0: %v", err)
	}
}
