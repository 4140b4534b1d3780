package train

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/filetest"
	"anneal/train/traintest"
)

// parity is 100 steps of two tiny models in PyTorch; testdata/make_parity.py defines weights and tokens by integers.
type parity struct {
	Steps, Batch int
	Optimizer    struct {
		LR, Beta1, Beta2, Eps, Clip float64
		WeightDecay                 float64 `json:"weight_decay"`
	}
	Configs []struct {
		Name  string
		Model struct {
			Vocab, Layers, Dim, Heads, FFN, Context int
			KVHeads                                 int     `json:"kv_heads"`
			HeadDim                                 int     `json:"head_dim"`
			RopeTheta                               float64 `json:"rope_theta"`
			NormEps                                 float64 `json:"norm_eps"`
			Tied                                    bool
			QKNorm                                  bool `json:"qk_norm"`
		}
		Float64, Float32, BF16 curve
	}
}

type curve struct {
	Loss     []float64
	GradNorm []float64 `json:"grad_norm"`
}

func loadParity(t testing.TB) parity {
	t.Helper()
	data, err := os.ReadFile("testdata/parity.json")
	if err != nil {
		t.Fatal(err)
	}
	var p parity
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// parityTrainer returns configuration i of the fixture, ready for its first step.
func parityTrainer(t testing.TB, p parity, i int, precision string, threads, microBatch int,
	more ...func(*config.Config)) (*Trainer, dataset.Source) {
	t.Helper()
	m := p.Configs[i].Model
	cfg := config.Default()
	cfg.Precision = precision
	cfg.Model.Vocab, cfg.Model.Layers, cfg.Model.Dim, cfg.Model.Heads, cfg.Model.FFN = m.Vocab, m.Layers, m.Dim,
		m.Heads, m.FFN
	cfg.Model.Context, cfg.Model.KVHeads, cfg.Model.HeadDim = m.Context, m.KVHeads, m.HeadDim
	cfg.Model.RopeTheta, cfg.Model.NormEps, cfg.Model.TieEmbeddings, cfg.Model.QKNorm = m.RopeTheta, m.NormEps,
		m.Tied, m.QKNorm
	o := p.Optimizer
	cfg.Optimizer.LR, cfg.Optimizer.Beta1, cfg.Optimizer.Beta2, cfg.Optimizer.Eps, cfg.Optimizer.WeightDecay = o.LR,
		o.Beta1, o.Beta2, o.Eps, o.WeightDecay
	cfg.Train.Clip, cfg.Train.Steps, cfg.Train.BatchTokens, cfg.Train.MicroBatch = o.Clip, p.Steps,
		p.Batch*m.Context, microBatch
	cfg.Schedule.Name, cfg.Schedule.Warmup = "constant", 1
	cfg.Data.Path = "parity"
	for _, f := range more {
		f(cfg)
	}
	cfg.Resolve()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	tr := trainerOf(t, cfg, threads)
	for n, v := range tr.Model().HFViews() {
		for e := range v.Tensor.Len() {
			w := 1.0
			if v.Tensor.Rank() == 2 {
				u := float64(traintest.Splitmix(uint64(n)<<32|uint64(e))>>11) * 0x1p-53
				w = float64(float32(0.034641016151377546 * (2*u - 1)))
			}
			v.Tensor.SetFloat64(e, w)
		}
	}
	return tr, traintest.Tokens{VocabSize: m.Vocab, Length: m.Context, BatchSize: p.Batch}
}

// 100 steps from the same weights on the same batches follow PyTorch's losses.
func TestLossesMatchPyTorch(t *testing.T) {
	p := loadParity(t)
	for i, c := range p.Configs {
		for _, mode := range []struct {
			precision string
			want      curve
			loss      float64 // relative tolerance
			norm      float64
		}{
			{"fp64", c.Float64, 1e-9, 1e-7},
			{"fp32", c.Float32, 1e-4, 1e-3},
			// PyTorch's own BF16 run is up to about 0.1 % away from its FP32 one.
			{"bf16", c.Float32, 0.003, 0.03},
		} {
			t.Run(c.Name+"/"+mode.precision, func(t *testing.T) {
				tr, src := parityTrainer(t, p, i, mode.precision, 2, p.Batch)
				worst := 0.0
				for s := range p.Steps {
					got, err := tr.Step(context.Background(), src)
					if err != nil {
						t.Fatal(err)
					}
					d := math.Abs(got.Loss-mode.want.Loss[s]) / mode.want.Loss[s]
					worst = max(worst, d)
					if d > mode.loss {
						t.Fatalf("step %d: loss %.12g, PyTorch %.12g (relative difference %.2g)",
							s, got.Loss, mode.want.Loss[s], d)
					}
					if d := math.Abs(got.GradNorm-mode.want.GradNorm[s]) / mode.want.GradNorm[s]; d > mode.norm {
						t.Fatalf("step %d: gradient norm %.12g, PyTorch %.12g (relative difference %.2g)",
							s, got.GradNorm, mode.want.GradNorm[s], d)
					}
				}
				t.Logf("largest relative difference of the loss: %.2g", worst)
			})
		}
	}
}

// One batch of four sequences, two micro-batches of two, four of one: the same step up to rounding, and in float64 to
// 1e-12.
func TestAccumulationEqualsOneBigBatch(t *testing.T) {
	p := loadParity(t)
	run := func(micro int) []float64 {
		tr, src := parityTrainer(t, p, 0, "fp64", 1, micro)
		var losses []float64
		for range 5 {
			s, err := tr.Step(context.Background(), src)
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, s.Loss)
		}
		return losses
	}
	whole := run(4)
	for _, micro := range []int{1, 2} {
		for i, got := range run(micro) {
			if math.Abs(got-whole[i]) > 1e-12*whole[i] {
				t.Errorf("micro-batch %d, step %d: loss %.17g, whole batch %.17g", micro, i, got, whole[i])
			}
		}
	}
}

// The bits of weights, moments and losses do not depend on the number of threads.
func TestThreadsDoNotChangeTheBits(t *testing.T) {
	p := loadParity(t)
	for precision, set := range recipes() {
		if precision == "fp64" {
			continue
		}
		run := func(threads int) string {
			tr, src := parityTrainer(t, p, 1, "bf16", threads, 2, set)
			for range 10 {
				if _, err := tr.Step(context.Background(), src); err != nil {
					t.Fatal(err)
				}
			}
			return fmt.Sprint(hashes(tr))
		}
		one := run(1)
		for _, threads := range []int{2, 3, 17} {
			if got := run(threads); got != one {
				t.Errorf("%s: %d threads give %s, one gives %s", precision, threads, got, one)
			}
		}
	}
}

func TestStepAllocatesNothingOnTheGoHeap(t *testing.T) {
	p := loadParity(t)
	tr, _ := parityTrainer(t, p, 0, "bf16", 2, 2)
	src := dataset.NewRandom(64, 16, 1)
	step := func() {
		if _, err := tr.Step(context.Background(), src); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := filetest.AllocsPerRun(10, step); n != 0 {
		t.Errorf("%v allocations per step, want 0", n)
	}
}
