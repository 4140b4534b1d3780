package plan

import (
	"math"
	"strings"
	"testing"

	"anneal/model"
	"anneal/nn"
	"anneal/precision"
	"anneal/tensor"
	"anneal/train"
)

// matrix is a model of one matrix of a million weights, as a policy stores it.
func matrix(policy precision.Policy) []*nn.Param {
	p := nn.Declare("w", nn.Matrix, 1000, 1000)
	p.Allocate(tensor.NewMeasure(""), policy.Weight, tensor.NewMeasure(""), policy.Master)
	return []*nn.Param{p}
}

// The published bytes a parameter: 16, 6 + 12/D, 2 + 16/D and 16/D for AdamW in BF16. Megatron's are these, and 2 for
// the BF16 copy that stage 0 does not have here.
func TestStagesKeepTheirPublishedBytes(t *testing.T) {
	for _, c := range []struct {
		precision string
		state     int64 // bytes a parameter
		want      func(d float64) [Stages]float64
	}{
		{"bf16", 8, func(d float64) [Stages]float64 { return [Stages]float64{16, 6 + 12/d, 2 + 16/d, 16 / d} }},
		{"fp16", 8, func(d float64) [Stages]float64 { return [Stages]float64{16, 6 + 12/d, 2 + 16/d, 16 / d} }},
		{"fp32", 8, func(d float64) [Stages]float64 { return [Stages]float64{16, 8 + 8/d, 4 + 12/d, 16 / d} }},
		{"fp8", 8, func(d float64) [Stages]float64 { return [Stages]float64{16, 8 + 8/d, 4 + 12/d, 16 / d} }},
		{"bf16_sr", 8, func(d float64) [Stages]float64 { return [Stages]float64{14, 6 + 8/d, 2 + 12/d, 14 / d} }},
		{"bf16", 4, func(d float64) [Stages]float64 { return [Stages]float64{12, 6 + 8/d, 2 + 12/d, 12 / d} }}, // Lion
	} {
		policy, err := precision.Lookup(c.precision)
		if err != nil {
			t.Fatal(err)
		}
		for _, ranks := range []int{1, 2, 8, 64} {
			cfg := load(t, "precision="+c.precision)
			s := ShareOf(cfg, matrix(policy), policy, c.state*1e6)
			for zero, want := range c.want(float64(ranks)) {
				if got := s.At(zero, ranks).Kept() / 1e6; math.Abs(got-want) > 1e-9 {
					t.Errorf("%s, %d ranks, stage %d: %v bytes a parameter, want %v",
						c.precision, ranks, zero, got, want)
				}
			}
		}
	}
}

// Tables and vectors are read as they are updated, so that a replica of them costs 4 bytes and needs no master.
func TestTablesHaveNoNarrowReplica(t *testing.T) {
	cfg := load(t, tiny...)
	f, err := train.MeasureRun(cfg, machine{})
	if err != nil {
		t.Fatal(err)
	}
	params, wide, all := model.Outline(f.Model, f.Policy).Params(), 0., 0.
	for _, p := range params {
		all += float64(p.Len())
		if p.Role != nn.Matrix {
			wide += float64(p.Len())
		}
	}
	s := ShareOf(cfg, params, f.Policy, f.Optimizer.State)
	want := 2*all + 2*wide + (4*(all-wide)+12*all)/64
	if got := s.At(2, 64).Kept(); math.Abs(got-want) > 1 {
		t.Errorf("stage 2 of 64 keeps %.0f bytes, want %.0f", got, want)
	}
}

// A rank alone sends nothing. Of D it sends (D−1)/D of a gradient for every micro-batch it computes, in the format of
// the wire, and of the weights: none, the copies that are read once, or twice a micro-batch.
func TestStagesSendTheirFormula(t *testing.T) {
	policy, err := precision.Lookup("bf16")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set       []string
		ranks     string
		gradients float64 // bytes a parameter, over (D−1)/D
		weights   [Stages]float64
	}{
		{nil, "4", 4, [Stages]float64{0, 2, 2, 4}}, // 4 micro-batches: a round
		{nil, "2", 8, [Stages]float64{0, 2, 2, 8}},
		{nil, "3", 8, [Stages]float64{0, 2, 2, 8}}, // in the second round only one rank has one
		{[]string{"parallel.wire=bf16"}, "4", 2, [Stages]float64{0, 2, 2, 4}},
		{[]string{"parallel.wire=int8"}, "4", 1 + 1./64, [Stages]float64{0, 2, 2, 4}},
		{[]string{"parallel.sum_block=2"}, "2", 4, [Stages]float64{0, 2, 2, 8}},
	} {
		cfg := load(t, append(c.set, "parallel.ranks="+c.ranks)...)
		s, d := ShareOf(cfg, matrix(policy), policy, 8e6), cfg.Parallel.Ranks
		for zero := range Stages {
			got, others := s.At(zero, d), 1e6*float64(d-1)/float64(d)
			gradients := c.gradients
			if zero == 0 {
				gradients += 4 // the sums, to all
			}
			if math.Abs(got.SentGradients-gradients*others) > 1e-3 ||
				math.Abs(got.SentWeights-c.weights[zero]*others) > 1e-3 {
				t.Errorf("%v, %d ranks, stage %d: sends %v and %v bytes a parameter, want %v and %v", c.set, d, zero,
					got.SentGradients/others, got.SentWeights/others, gradients, c.weights[zero])
			}
			if alone := s.At(zero, 1); alone.Sent() != 0 {
				t.Errorf("stage %d alone sends %v bytes", zero, alone.Sent())
			}
		}
	}
}

// A step of 4 micro-batches is one sum for each of 4 ranks, and two for each of 2, unless they are added before.
func TestRanksThatSendOftenAreTold(t *testing.T) {
	for _, c := range []struct {
		set  []string
		says string
	}{
		{[]string{"parallel.ranks=1"}, ""}, {[]string{"parallel.ranks=4"}, ""},
		{[]string{"parallel.ranks=2"}, "2 times a step: a larger train.micro_batch sends less, and so does " +
			"parallel.sum_block = 2"},
		{[]string{"parallel.ranks=2", "parallel.sum_block=2"}, ""},
	} {
		if got := planOf(t, machine{}, c.set...).Ranks.Remark(); (got == "") != (c.says == "") ||
			!strings.Contains(got, c.says) {
			t.Errorf("%v: %q, want %q", c.set, got, c.says)
		}
	}
}
