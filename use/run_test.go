package use

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/model"
	"anneal/nn"
	"anneal/run"
	"anneal/tokenizer"
	"anneal/train/traintest"
)

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
	data := traintest.Data(t)
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, run.Options{Config: traintest.Config(data), Dir: dir})
	for _, c := range []struct {
		name string
		run  func() error
		want string
	}{
		{"existing run", func() error {
			_, err := run.Run(context.Background(), run.Options{Config: traintest.Config(data), Dir: dir})
			return err
		}, "anneal resume"},
		{"not a run", func() error {
			_, err := run.Resume(context.Background(), run.Options{Dir: data})
			return err
		}, "not a run"},
		{"no data", func() error {
			_, err := run.Run(context.Background(),
				run.Options{Config: traintest.Config(t.TempDir()), Dir: filepath.Join(t.TempDir(), "r")})
			return err
		}, "anneal data build"},
		{"context longer than the data", func() error {
			cfg := traintest.Config(data)
			cfg.Model.Context, cfg.Train.BatchTokens, cfg.Train.MicroBatch = 1<<20, 1<<20, 1
			_, err := run.Run(context.Background(), run.Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "r")})
			return err
		}, "try a context of at most"},
		{"a vocabulary too small for the data", func() error {
			cfg := traintest.Config(data)
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
			none := traintest.DataWith(t, 0, tokenizer.TrainOptions{VocabSize: 320})
			_, err = r.Evaluate(context.Background(), none, 0, nil)
			return err
		}, "no validation split"},
		{"too large a model", func() error {
			cfg := traintest.Config(data)
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
	data := traintest.Data(t)
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
		cfg := traintest.Config(data)
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
