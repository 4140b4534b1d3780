package train

import (
	"fmt"
	"testing"

	"anneal/comm/absent"
	"anneal/config"
	"anneal/device"
	"anneal/model"
	"anneal/nn"
	"anneal/optim"
	"anneal/parallel"
	"anneal/tensor"
)

// What a rank keeps at each stage of ZeRO is, to the byte, what the formula says of its pieces: with AdamW in bf16 16
// bytes a parameter, 6 + 12 of what it owns, 2 + 16, and 16 of what it owns.
func TestStageKeepsWhatItsFormulaSays(t *testing.T) {
	for _, ranks := range []int{2, 3, 8} {
		for stage := range 4 {
			cfg, err := config.Load("", []string{
				"data.path=x", "model.vocab=5000", "model.tie_embeddings=false", "train.batch_tokens=2048",
				"train.micro_batch=1", fmt.Sprint("parallel.zero=", stage),
			})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Resolve()
			for rank := range ranks {
				f, err := MeasureRank(cfg, device.Unknown{}, absent.New(rank, ranks, true))
				if err != nil {
					t.Fatal(err)
				}
				got := f.Bytes(Parameters) - f.Tables + f.Bytes(Gradients) + f.Bytes(OptimizerState) +
					f.Bytes(parallel.MasterWeights)
				if want := keeps(cfg, stage, rank, ranks); got != want {
					t.Errorf("rank %d of %d at stage %d keeps %d bytes, its formula says %d",
						rank, ranks, stage, got, want)
				}
			}
		}
	}
}

// keeps is the formula of a stage, for AdamW in bf16; every tensor, and every piece of one, is on cache lines of its
// own.
func keeps(cfg *config.Config, stage, rank, ranks int) (n int64) {
	m := model.Declare(cfg.Model)
	params := m.Params()
	take := func(elements, bytes int) {
		n += int64((elements*bytes + tensor.Align - 1) &^ (tensor.Align - 1))
	}
	narrow := func(p *nn.Param) bool { return p.Role == nn.Matrix || p.Role == nn.Head }
	for _, p := range params {
		switch {
		case stage == 3:
		case stage == 0 || !narrow(p):
			take(p.Len(), 4) // weights in FP32
		default:
			take(p.Len(), 2)
		}
		if stage < 2 {
			take(p.Len(), 4) // gradient
		}
		if stage == 0 {
			take(p.Len(), 4) // moments
			take(p.Len(), 4)
		}
	}
	if stage == 0 {
		return n
	}
	pieces := parallel.Deal(m.UnitParams(), ranks, func(*nn.Param) optim.Division { return optim.Elements })
	for _, p := range pieces {
		if p.Owner != rank {
			continue
		}
		own := p.To - p.From
		take(own, 4)
		take(own, 4)
		if stage == 3 || narrow(params[p.Param]) {
			take(own, 4) // weights in FP32
		}
		if stage >= 2 {
			take(own, 4) // gradient
		}
	}
	return n
}
