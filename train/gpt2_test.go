package train

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// gpt2Parity is 100 steps of a tiny GPT-2 in transformers; testdata/make_parity_gpt2.py defines it.
func gpt2Parity(t *testing.T) parity {
	t.Helper()
	data, err := os.ReadFile("testdata/parity_gpt2.json")
	if err != nil {
		t.Fatal(err)
	}
	var p parity
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// 100 steps of GPT-2 from the same weights on the same batches follow those of transformers' model.
func TestGPT2LossesMatchTransformers(t *testing.T) {
	p := gpt2Parity(t)
	c := p.Configs[0]
	for _, mode := range []struct {
		precision  string
		want       curve
		loss, norm float64 // relative tolerances
	}{
		{"fp64", c.Float64, 1e-9, 1e-7},
		{"fp32", c.Float32, 1e-4, 1e-3},
		{"bf16", c.Float32, 0.003, 0.03},
	} {
		t.Run(mode.precision, func(t *testing.T) {
			tr, src := parityTrainer(t, p, 0, mode.precision, 2, p.Batch, func(c *config.Config) {
				c.Model.Family, c.Model.RopeTheta = "gpt2", config.Default().Model.RopeTheta
			})
			for n, param := range tr.Model().Params() {
				for e := range param.Value.Len() {
					w := map[bool]float64{true: 1}[param.Role.String() == "norm"]
					if param.Value.Rank() == 2 {
						u := float64(traintest.Splitmix(uint64(n)<<32|uint64(e))>>11) * 0x1p-53
						w = float64(float32(0.034641016151377546 * (2*u - 1)))
					}
					param.Value.SetFloat64(e, w)
				}
			}
			for s := range p.Steps {
				got, err := tr.Step(context.Background(), src)
				if err != nil {
					t.Fatal(err)
				}
				if d := math.Abs(got.Loss-mode.want.Loss[s]) / mode.want.Loss[s]; d > mode.loss {
					t.Fatalf("step %d: loss %.12g, transformers %.12g (relative difference %.2g)",
						s, got.Loss, mode.want.Loss[s], d)
				}
				if d := math.Abs(got.GradNorm-mode.want.GradNorm[s]) / mode.want.GradNorm[s]; d > mode.norm {
					t.Fatalf("step %d: gradient norm %.12g, transformers %.12g (relative difference %.2g)",
						s, got.GradNorm, mode.want.GradNorm[s], d)
				}
			}
		})
	}
}
