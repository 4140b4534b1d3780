package use

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/run"
	"anneal/tokenizer"
	"anneal/train/traintest"
)

// mixConfig is a run over two data sets whose weights jump, and move along a line.
func mixConfig(a, b string) *config.Config {
	cfg := traintest.Config("")
	traintest.Override(cfg, "data.mix=a="+a+", b="+b, "data.weights=a=3 b=1, b=1 from 30%, a=1 from 50% to 80%")
	return cfg
}

// The mixed measures are those of all tokens that the sources' are of, and the loss of a step that of its rows.
func TestMeasuresOfSourcesAddUp(t *testing.T) {
	cfg := mixConfig(traintest.Data(t), traintest.DataWith(t, 0.2, tokenizer.TrainOptions{VocabSize: 320}))
	cfg.Train.Steps, cfg.Train.EvalEvery, cfg.Schedule.Warmup = 8, 4, 1
	traintest.Override(cfg, "data.weights=a=1 b=1")
	dir := filepath.Join(t.TempDir(), "run")
	r := mustRun(t, run.Options{Config: cfg, Dir: dir})
	var nats, tokens, bytes float64
	for _, s := range r.ValSources {
		nats, tokens, bytes = nats+float64(s.Loss)*float64(s.Tokens), tokens+float64(s.Tokens), bytes+float64(s.Bytes)
		if s.Tokens != 1024 {
			t.Errorf("%s: %d tokens scored, want half of 2048", s.Name, s.Tokens)
		}
	}
	if math.Abs(nats/tokens-r.ValLoss) > 1e-9 || math.Abs(nats/math.Ln2/bytes-r.ValBitsPerByte) > 1e-9 {
		t.Errorf("loss %v, bits per byte %v; the sources' add up to %v, %v",
			r.ValLoss, r.ValBitsPerByte, nats/tokens, nats/math.Ln2/bytes)
	}
	for _, line := range readMetrics(t, dir) {
		losses := line["source_loss"].(map[string]any)
		low, high := math.Inf(1), math.Inf(-1)
		for _, v := range losses {
			low, high = min(low, v.(float64)), max(high, v.(float64))
		}
		if loss := line["loss"].(float64); len(losses) != 2 || loss < low-1e-6 || loss > high+1e-6 {
			t.Errorf("step %v: loss %v, of the sources %v", line["step"], loss, losses)
		}
		if n, has := line["source_tokens"].(map[string]any); has &&
			n["a"].(float64)+n["b"].(float64) != line["tokens"].(float64) {
			t.Errorf("step %v: %v of %v tokens", line["step"], n, line["tokens"])
		}
	}
	again, err := OpenWith(dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	sources, _ := cfg.Sources()
	e, err := again.EvaluateSources(context.Background(), sources, cfg.Train.EvalTokens, nil)
	if err != nil || e.Loss != r.ValLoss || len(e.Sources) != 2 || e.Sources[1] != r.ValSources[1] {
		t.Errorf("evaluated again: %+v, %v; want %v", e, err, r.ValLoss)
	}
}
