package primer

import (
	"fmt"

	"anneal/config"
	"anneal/model"
	"anneal/plan"
	"anneal/train"
)

// gigabyte is 10⁹ bytes, as in publications of models.
const gigabyte = 1e9

// gigabytes writes bytes with three digits or more.
func gigabytes(bytes float64) string {
	if gb := bytes / gigabyte; gb >= 100 {
		return fmt.Sprintf("%.0f GB", gb)
	}
	return fmt.Sprintf("%.3g GB", bytes/gigabyte)
}

// optimizers lists the names of the optimizers in the table.
var optimizers = []string{
	"sgd", "adafactor", "adam8bit", "lion", "muon", "adam", "adamw", "sophia", "schedulefree", "ademamix", "soap",
}

// narrowMoments is the table's name for AdamW with moments in BF16.
const narrowMoments = "adamw, BF16 moments"

// shapes holds the shapes of LLaMA 2 (Touvron et al. 2023, arXiv 2307.09288).
var shapes = map[string][]string{
	"7B":  {"model.layers=32", "model.dim=4096", "model.heads=32", "model.ffn=11008"},
	"70B": {"model.layers=80", "model.dim=8192", "model.heads=64", "model.kv_heads=8", "model.ffn=28672"},
}

// planOf plans a LLaMA 2 of a size with overrides, on a device with unknown properties.
func planOf(size string, overrides ...string) (*plan.Plan, *config.Config, error) {
	overrides = append(append([]string{
		"model.context=4096", "model.vocab=32000", "model.tie_embeddings=false", "train.micro_batch=1",
	}, shapes[size]...), overrides...)
	cfg, err := config.Sources{Overrides: overrides, Planning: true}.Load()
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.For(cfg, train.AbsentDevice("cuda"))
	return p, cfg, err
}

// StateOf returns the bytes that an optimizer keeps per parameter of a LLaMA 2 of size 7B or 70B, and the number of
// parameters.
func StateOf(size, optimizer string) (each, parameters float64, err error) {
	set := []string{"optimizer.name=" + optimizer}
	if optimizer == narrowMoments {
		set = []string{"optimizer.name=adamw", "optimizer.moments=bf16"}
	}
	p, _, err := planOf(size, set...)
	if err != nil {
		return 0, 0, err
	}
	return float64(p.Memory.Bytes(train.OptimizerState)) / float64(p.Parameters), float64(p.Parameters), nil
}

func optimizerTable() (*Table, error) {
	t := &Table{
		Name: "optimizers", Title: "Memory of optimizers",
		Columns: []string{"optimizer", "state, bytes a parameter", "LLaMA 2 7B", "LLaMA 2 70B"},
		Notes: "Counted by laying out the state of these models. Weights and gradients come on top, 4 bytes each " +
			"here. Muon keeps a momentum for matrices and AdamW's two moments for the tables; Adafactor keeps sums " +
			"of rows and columns; 8-bit Adam a byte for each moment and a scale for each block; SOAP two moments and " +
			"the bases of rows and columns. AdamW with masters in FP64 (CPU) keeps 24 bytes.",
	}
	for _, name := range append(optimizers, narrowMoments) {
		row := []string{name}
		for i, size := range []string{"7B", "70B"} {
			each, n, err := StateOf(size, name)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				row = append(row, fmt.Sprintf("%.3g", each))
			}
			row = append(row, gigabytes(each*n))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// A Split holds the bytes per parameter of a way to train with AdamW.
type Split struct {
	Name                                string
	Weights, Gradients, Master, Moments float64
}

// Splits lists the ways of the literature, and those of anneal.
var Splits = []Split{
	{"FP32", 4, 4, 0, 8},
	{"mixed precision, narrow gradients", 2, 2, 4, 8},
	{"mixed precision, FP32 gradients", 2, 4, 4, 8},
	{"anneal, bf16", 4, 4, 0, 8},
	{"anneal, bf16_sr", 2, 4, 0, 8},
}

// Bytes returns the sum.
func (s Split) Bytes() float64 { return s.Weights + s.Gradients + s.Master + s.Moments }

func mixedTable() (*Table, error) {
	t := &Table{
		Name: "mixed-precision", Title: "Bytes a parameter, with AdamW",
		Columns: []string{"way", "weights", "gradients", "FP32 copy", "moments", "together", "7B", "70B"},
		Notes: "Mixed precision keeps narrow weights for the products and an FP32 copy for the updates " +
			"(Micikevicius et al. 2017, arXiv 1710.03740); the 16 bytes are those of ZeRO (Rajbhandari et al. " +
			"2019, arXiv 1910.02054). anneal rounds FP32 weights to BF16 while it reads them, and so needs no " +
			"copy; bf16_sr rounds the weights themselves, at random. Activations come on top.",
	}
	for _, s := range Splits {
		row := []string{s.Name}
		for _, x := range []float64{s.Weights, s.Gradients, s.Master, s.Moments, s.Bytes()} {
			row = append(row, fmt.Sprintf("%g", x))
		}
		for _, billions := range []float64{7, 70} {
			row = append(row, gigabytes(s.Bytes()*billions*gigabyte))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// ZeROBytes returns the bytes that each of n ranks keeps per parameter in mixed precision with AdamW at a stage of
// ZeRO: narrow weights, narrow gradients, and 12 bytes of FP32 weights and moments (Rajbhandari et al. 2019, arXiv
// 1910.02054, figure 1).
func ZeROBytes(stage, n int) float64 {
	parts, ranks := []float64{12, 2, 2}, float64(n) // optimizer, gradients, weights
	sum := 0.0
	for i, part := range parts {
		if i < stage {
			part /= ranks
		}
		sum += part
	}
	return sum
}

func zeroTable() (*Table, error) {
	t := &Table{
		Name: "zero", Title: "ZeRO: state of a rank, mixed precision with AdamW",
		Columns: []string{
			"stage", "each rank keeps", "8 ranks: bytes a parameter", "7B", "64 ranks: bytes", "7B", "70B", "traffic",
		},
		Notes: "Bytes a parameter: 2 of weights, 2 of gradients, 12 of FP32 weights and moments; each stage divides " +
			"one more of them among the ranks (Rajbhandari et al. 2019, arXiv 1910.02054). Activations are not " +
			"divided. This program keeps gradients in FP32, 4 bytes. traffic: bytes that a rank sends in a step, " +
			"over the bytes of the weights. `anneal train CONFIG parallel.zero=3 --dry-run --ranks 64` counts a run " +
			"of your own.",
	}
	keeps := []string{"everything", "a part of the optimizer", "and of the gradients", "and of the weights"}
	for stage, says := range keeps {
		row := []string{fmt.Sprint(stage), says}
		for _, n := range []int{8, 64} {
			each := ZeROBytes(stage, n)
			row = append(row, fmt.Sprintf("%.3g", each), gigabytes(7*gigabyte*each))
			if n == 64 {
				row = append(row, gigabytes(70*gigabyte*each))
			}
		}
		t.Rows = append(t.Rows, append(row, []string{"2 ×", "2 ×", "2 ×", "3 ×"}[stage]))
	}
	return t, nil
}

// Recomputations lists the strategies in the table.
var Recomputations = []string{"none", "selective", "sqrt", "every_layer"}

// Recomputed returns the activations of a micro-batch of LLaMA 2 7B under a strategy, in bytes, and the operations that
// it adds, as a share of those of a step.
func Recomputed(strategy string) (kept, extra float64, err error) {
	p, cfg, err := planOf("7B", "memory.recompute="+strategy)
	if err != nil {
		return 0, 0, err
	}
	f, err := train.MeasureRun(cfg, train.AbsentDevice("cuda"))
	if err != nil {
		return 0, 0, err
	}
	m, n := model.Outline(f.Model, f.Policy), f.Model.Context
	return float64(p.Memory.Bytes(train.Activations)), m.RecomputedFLOPsPerToken(n) / m.FLOPsPerToken(n), nil
}

func recomputeTable() (*Table, error) {
	t := &Table{
		Name: "recompute", Title: "Activations of LLaMA 2 7B, one sequence of 4,096 tokens, BF16",
		Columns: []string{"memory.recompute", "activations", "of none", "more operations"},
		Notes: "none keeps all; selective recomputes attention; every_layer keeps the input of each layer " +
			"(Chen et al. 2016, arXiv 1604.06174), sqrt that of every √L-th. Gradients have the same bits with " +
			"each. Attention stores no score matrix (FlashAttention, arXiv 2205.14135).",
	}
	all := 0.0
	for _, strategy := range Recomputations {
		kept, extra, err := Recomputed(strategy)
		if err != nil {
			return nil, err
		}
		if all == 0 {
			all = kept
		}
		t.Rows = append(t.Rows, []string{
			strategy, gigabytes(kept), fmt.Sprintf("%.0f %%", 100*kept/all),
			fmt.Sprintf("%.1f %%", 100*extra),
		})
	}
	return t, nil
}
