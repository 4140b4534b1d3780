package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Of any documents, with and without a prompt, in shards of any size: the targets that are ignored are exactly the
// tokens up to the end of a prompt, wherever a window cuts; everything else is the stream.
func TestPromptsAreReadButNotTrainedOn(t *testing.T) {
	const end = "=>"
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var docs []string
		var stream []uint32
		var ignored []bool
		count := uint64(0)
		for i := range 2 + rng.IntN(11) {
			doc := fmt.Sprintf("%d%s%s", i, strings.Repeat("q", rng.IntN(20)),
				[]string{end, "", end + "a", end + "answer" + end + "more"}[min(i, 1)*rng.IntN(4)])
			docs = append(docs, doc)
			stream, ignored = append(stream, byteTokenizer.EOT), append(ignored, false)
			prompt := 0
			if before, _, ok := strings.Cut(doc, end); ok {
				prompt = len(before) + len(end)
			}
			for k, c := range []byte(doc) {
				stream, ignored = append(stream, uint32(c)), append(ignored, k < prompt)
			}
			count += uint64(prompt)
		}
		d := build(t, docs, BuildOptions{PromptEnd: end, ShardTokens: 1 + rng.Uint64N(80)})
		if err := d.Verify(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := d.Manifest.Train.PromptTokens; got != count {
			t.Fatalf("seed %d: %d tokens are in prompts, the manifest says %d", seed, count, got)
		}
		context := 1 + rng.IntN(min(17, len(stream)-1))
		l, err := d.TrainLoader(context, seed)
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := l.Batch(&b, 0, int(l.Windows())); err != nil {
			t.Fatal(err)
		}
		for i, got := range b.Targets {
			at := int(l.At(uint64(i/context)))*context + i%context
			want := int32(stream[at+1])
			if ignored[at+1] {
				want = Ignore
			}
			if got != want || b.Tokens[i] != stream[at] {
				t.Fatalf("seed %d: after token %d of the stream, %d, the target is %d, want %d",
					seed, at, b.Tokens[i], got, want)
			}
		}
	}
}

// A prompt is encoded apart from what follows it: its tokens are those that it has alone.
func TestAPromptIsTheTokensThatItHasAlone(t *testing.T) {
	pairs := func() func([]uint32, []byte) []uint32 { // two bytes are one token, where there are two
		return func(dst []uint32, text []byte) []uint32 {
			for len(text) > 1 {
				dst, text = append(dst, uint32(text[0])), text[2:]
			}
			for _, c := range text {
				dst = append(dst, uint32(c))
			}
			return dst
		}
	}
	d := build(t, []string{"abc>defg"}, BuildOptions{PromptEnd: "c>", NewEncoder: pairs})
	if got := d.train.all(t); !slices.Equal(got, []uint32{256, 'a', 'c', 'd', 'f'}) ||
		d.Manifest.Train.PromptTokens != 2 {
		t.Errorf("tokens %v, %d of them a prompt", got, d.Manifest.Train.PromptTokens)
	}
	d = build(t, []string{"ab>cde"}, BuildOptions{PromptEnd: "b>", NewEncoder: pairs})
	if got := d.train.all(t); !slices.Equal(got, []uint32{256, 'a', '>', 'c', 'e'}) ||
		d.Manifest.Train.PromptTokens != 2 {
		t.Errorf("tokens %v, %d of them a prompt", got, d.Manifest.Train.PromptTokens)
	}
}

func TestAPromptEndThatNoDocumentHasIsAnError(t *testing.T) {
	_, err := Build(t.Context(), BuildOptions{Dir: t.TempDir(), Tokenizer: byteTokenizer, NewEncoder: byteEncoder,
		PromptEnd: "\n### Answer"}, sequence([]string{"a", "b"}))
	if err == nil || !strings.Contains(err.Error(), "### Answer") {
		t.Errorf("%v", err)
	}
}

// Without prompts nothing is new: neither in the shards nor in the manifest.
func TestDataWithoutPromptsIsAsBefore(t *testing.T) {
	d := build(t, []string{"ab", "c"}, BuildOptions{})
	text, err := os.ReadFile(filepath.Join(d.Dir, "dataset.json"))
	if err != nil || bytes.Contains(text, []byte("prompt")) {
		t.Errorf("%v\n%s", err, text)
	}
	if s := d.train.shards[0]; s.h.version() != 1 || s.prompts != nil {
		t.Errorf("version %d", s.h.version())
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Error(err)
	}
}

// Lengths of prompts that cannot be are refused when the shard is opened, though all checksums are right.
func TestImpossiblePromptsAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "00000.tokens")
	for name, c := range map[string]struct {
		index []uint64 // end, prompt
		all   uint64
		ok    bool
	}{
		"good":                  {[]uint64{3, 2, 5, 0}, 2, true},
		"longer than its text":  {[]uint64{3, 3, 5, 0}, 3, false},
		"enormous":              {[]uint64{3, 1<<64 - 1, 5, 0}, 1<<64 - 1, false},
		"end before the start":  {[]uint64{3, 0, 2, 0}, 0, false},
		"end beyond the tokens": {[]uint64{3, 0, 6, 0}, 0, false},
		"tokens left over":      {[]uint64{3, 0, 4, 0}, 0, false},
		"another sum":           {[]uint64{3, 2, 5, 0}, 1, false},
	} {
		w, err := createShard(path, byteTokenizer, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.append([]uint32{256, 1, 2, 256, 3}); err != nil {
			t.Fatal(err)
		}
		for _, v := range c.index {
			for range 8 {
				w.ends, v = append(w.ends, byte(v)), v>>8
			}
		}
		w.h.tokens, w.h.docs, w.h.promptTokens = 5, uint64(len(c.index)/2), c.all
		if _, err := w.finish(); err != nil {
			t.Fatal(err)
		}
		s, err := openShard(path)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			s.f.Close()
		}
	}
}
