package use

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/model"
	"anneal/nn"
	"anneal/prepare"
	"anneal/run"
	"anneal/tokenizer"
)

// override sets keys of a configuration as section.key=value.
func override(cfg *config.Config, overrides ...string) {
	for _, o := range overrides {
		if err := cfg.Override(o); err != nil {
			panic(err)
		}
	}
}

// tinyConfig is a small model on a data set.
func tinyConfig(data string) *config.Config {
	cfg := config.Default()
	cfg.Data.Path = data
	cfg.Model.Layers, cfg.Model.Dim, cfg.Model.Heads, cfg.Model.Context = 2, 32, 2, 32
	cfg.Train.Steps, cfg.Train.BatchTokens, cfg.Train.EvalTokens = 40, 256, 2048
	cfg.Train.EvalEvery, cfg.Checkpoint.Every = 20, 10
	cfg.Optimizer.LR = 3e-3
	cfg.Resolve()
	return cfg
}

// documents generates text with structure: sums that a model can learn.
func documents(n int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := rand.New(rand.NewPCG(1, 2))
		for range n {
			var b bytes.Buffer
			for range 1 + r.IntN(20) {
				x, y := r.IntN(50), r.IntN(50)
				fmt.Fprintf(&b, "the sum of %d and %d is %d\n", x, y, x+y)
			}
			if !yield(b.Bytes(), nil) {
				return
			}
		}
	}
}

// testData builds a small data set with its tokenizer.
func testData(t testing.TB) string { return buildData(t, 0.1) }

func buildData(t testing.TB, val float64) string {
	return buildDataWith(t, val, tokenizer.TrainOptions{VocabSize: 320})
}

// buildDataWith builds the small data set with a tokenizer that is learned from it.
func buildDataWith(t testing.TB, val float64, o tokenizer.TrainOptions) string {
	t.Helper()
	dir := t.TempDir()
	tok, err := tokenizer.Train(context.Background(), o, documents(200))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tokenizer.json")
	opt := dataset.BuildOptions{
		Dir: dir, Tokenizer: prepare.DatasetTokenizer(tok, path), ValFraction: val,
		NewEncoder: func() func([]uint32, []byte) []uint32 { return tok.NewEncoder().Encode },
	}
	if _, err := dataset.Build(context.Background(), opt, documents(200)); err != nil {
		t.Fatal(err)
	}
	if err := tok.Save(path); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustRun(t testing.TB, o run.Options) *run.Result {
	t.Helper()
	r, err := run.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readMetrics(t testing.TB, dir string) []map[string]any {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []map[string]any
	for s := bufio.NewScanner(f); s.Scan(); {
		var l map[string]any
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("line %d of metrics.jsonl: %v", len(lines)+1, err)
		}
		lines = append(lines, l)
	}
	return lines
}

func TestBadRunsAreErrorsThatSayWhatToDo(t *testing.T) {
	data := testData(t)
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{Config: tinyConfig(data), Dir: dir})
	for _, c := range []struct {
		name string
		run  func() error
		want string
	}{
		{"existing run", func() error {
			_, err := run.Run(context.Background(), run.Options{Config: tinyConfig(data), Dir: dir})
			return err
		}, "anneal resume"},
		{"not a run", func() error {
			_, err := run.Resume(context.Background(), run.Options{Dir: data})
			return err
		}, "not a run"},
		{"no data", func() error {
			_, err := run.Run(context.Background(),
				run.Options{Config: tinyConfig(t.TempDir()), Dir: filepath.Join(t.TempDir(), "r")})
			return err
		}, "anneal data build"},
		{"context longer than the data", func() error {
			cfg := tinyConfig(data)
			cfg.Model.Context, cfg.Train.BatchTokens, cfg.Train.MicroBatch = 1<<20, 1<<20, 1
			_, err := run.Run(context.Background(), run.Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "r")})
			return err
		}, "try a context of at most"},
		{"a vocabulary too small for the data", func() error {
			cfg := tinyConfig(data)
			cfg.Model.Vocab = 100
			_, err := run.Run(context.Background(), run.Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "r")})
			if wrong := (config.Problem{}); !errors.As(err, &wrong) {
				t.Errorf("a mistake in the config is a %T", err)
			}
			return err
		}, "or remove model.vocab"},
		{"a directory that cannot be looked into", func() error {
			_, err := run.Config(filepath.Join(t.TempDir(), strings.Repeat("long", 100)))
			return err
		}, "cannot read the run"},
		{"nothing to measure", func() error {
			r, err := Open(dir, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			_, err = r.Evaluate(context.Background(), buildData(t, 0), 0, nil)
			return err
		}, "no validation split"},
		{"too large a model", func() error {
			cfg := tinyConfig(data)
			cfg.Model.Dim, cfg.Model.Layers, cfg.Model.FFN = 1<<14, 64, 1<<16
			cfg.Model.HeadDim = 1 << 13
			_, err := run.Run(context.Background(), run.Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "r")})
			return err
		}, "GiB are available"},
	} {
		if err := c.run(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", c.name, err, c.want)
		}
	}
}

// An exported model read back gives the same logits, and an imported one generates what the original did.
func TestExportAndImportKeepTheModel(t *testing.T) {
	data := testData(t)
	for name, change := range map[string]func(m *model.Config){
		"llama":   func(*model.Config) {},
		"qk_norm": func(m *model.Config) { m.QKNorm, m.TieEmbeddings = true, false },
		"scaled": func(m *model.Config) {
			m.RopeScaling, m.RopeOriginalContext = nn.RoPEScaling{Kind: "yarn", Factor: 2, Fast: 32, Slow: 1,
				Attention: 1.25}, 16
		},
		"gpt2": func(m *model.Config) { m.Family, m.Activation, m.Positions = "gpt2", "gelu", schemes("learned") },
	} {
		dir, out, back := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "hf"),
			filepath.Join(t.TempDir(), "back")
		cfg := tinyConfig(data)
		change(&cfg.Model)
		mustRun(t, run.Options{Config: cfg, Dir: dir})
		text := generateText(t, dir, out)
		if _, err := run.ImportHF(out, back, ""); err != nil {
			t.Fatal(err)
		}
		if again := generateText(t, back, ""); again != text {
			t.Errorf("%s: the imported model writes %q, the original %q", name, again, text)
		}
	}
}

// generateText continues a prompt greedily, and exports the run if export is not empty.
func generateText(t *testing.T, dir, export string) string {
	t.Helper()
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var text strings.Builder
	if _, err := r.Generate(context.Background(), GenerateOptions{Prompt: "the sum of 2", MaxTokens: 24},
		func(s string) { text.WriteString(s) }); err != nil {
		t.Fatal(err)
	}
	if export != "" {
		report, err := r.ExportHF(export, "F32")
		if err != nil {
			t.Fatal(err)
		}
		if report.MaxLogitDiff != 0 {
			t.Errorf("exported in F32, logits differ by %v", report.MaxLogitDiff)
		}
	}
	return text.String()
}
