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
	"anneal/train/traintest"
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

// The copy for a checkpoint is planned as what each rank writes of it, and MPI where ranks are processes.
func TestTheCopyOfARankIsWhatItWrites(t *testing.T) {
	for _, overrides := range [][]string{
		{"precision=bf16"}, {"precision=fp8", "fp8.scaling=delayed"}, {"optimizer.name=adam8bit", "average.ema=0.9"},
		{"parallel.outer.groups=2", "optimizer.name=muon"},
	} {
		for stage := range 4 {
			cfg := smallConfig(t, traintest.Data(t), append([]string{"train.batch_tokens=512"}, overrides...)...)
			cfg.Model.Vocab, cfg.Parallel.Zero = 300, stage
			inPlace := stage%2 == 0
			for r, x := range onRanks(t, cfg, 4, inPlace, func(*Trainer) error { return nil }) {
				written := 0
				for _, own := range x.Owned() {
					written += own.Value.Bytes()
				}
				planned, slack := x.Footprint().CheckpointCopy(), int64(written/50+512)
				if planned < int64(written)-slack || planned > int64(written)+slack {
					t.Errorf("%v, stage %d: rank %d writes %d bytes, planned are %d", overrides, stage, r, written,
						planned)
				}
				if mpi := x.Footprint().Bytes(MPI); mpi > 0 == inPlace {
					t.Errorf("stage %d: of ranks in one process %v, %d bytes are MPI's", stage, inPlace, mpi)
				}
			}
		}
	}
}

// Stages have memory for the micro-batches whose gradients of weights they put off: one on the first stage, which makes
// them at once, and one more on each stage after it.
func TestStagesKeepWhatTheyPutOff(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "train.batch_tokens=640", "model.tie_embeddings=false", "model.layers=6",
		"parallel.pipeline=3", "parallel.ranks=3", "parallel.schedule=zb-h1")
	cfg.Model.Vocab = 300
	var each []int64
	for stage := range 3 {
		f, err := MeasureRank(cfg, device.Unknown{}, absent.New(stage, 3, true))
		if err != nil {
			t.Fatal(err)
		}
		each = append(each, f.Bytes(Deferred))
	}
	if each[0] == 0 || each[1] != 2*each[0] || each[2] < 3*each[0] {
		t.Errorf("the stages have %d bytes for what they put off", each)
	}
}
