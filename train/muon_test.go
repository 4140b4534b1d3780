package train

import (
	"math"
	"strings"
	"testing"

	"anneal/comm/absent"
	"anneal/config"
	"anneal/device"
	"anneal/nn"
	"anneal/optim"
)

// What Muon leaves to AdamW goes as AdamW does, bit for bit, at a rate of its own; hidden matrices do not.
func TestMuonLeavesTheRestToAdamW(t *testing.T) {
	muon, src := optimizerTrainer(t, "muon", "model.tie_embeddings=false", "optimizer.lr=0.01",
		"optimizer.adamw_lr=0.001", "optimizer.weight_decay=0")
	adamw, _ := optimizerTrainer(t, "adamw", "model.tie_embeddings=false", "optimizer.lr=0.001",
		"optimizer.weight_decay=0")
	steps(t, muon, src, 1)
	steps(t, adamw, src, 1)
	for i, p := range muon.model.Params() {
		q := adamw.model.Params()[i]
		apart := 0.0
		for k := range p.Value.Len() {
			apart = math.Max(apart, math.Abs(p.Value.Float64(k)-q.Value.Float64(k)))
		}
		// The rate is a ratio of two, times the schedule: a unit in the last place of a step apart.
		if rest := p.Role != nn.Matrix; rest && apart > 1e-9 || !rest && apart < 1e-4 {
			t.Errorf("%s: AdamW would have led it %g away", p.Name, apart)
		}
	}
}

// Every way to move matrices learns the rule, from its own defaults.
func TestEveryFormOfMuonLearns(t *testing.T) {
	for _, form := range []string{
		"optimizer.muon_scale=jordan", "optimizer.muon_scale=spectral_mup", "optimizer.newton_schulz=jordan",
		"optimizer.newton_schulz_operands=bf16",
		"optimizer.normuon=true", "optimizer.cautious_decay=true",
	} {
		tr, src := optimizerTrainer(t, "muon", form)
		loss := steps(t, tr, src, 60)
		if loss > 2.2 { // ln 64 = 4.2 at the start; a model that knows the rule has 0.9
			t.Errorf("%s: after 60 steps the loss is %.3f", form, loss)
		}
		t.Logf("%s: %.3f", form, loss)
	}
}

func TestMuonNeedsMatricesToTrain(t *testing.T) {
	refused := func(err error) bool {
		return err != nil && strings.Contains(err.Error(), "2-D hidden matrices") &&
			strings.Contains(err.Error(), "adamw")
	}
	cfg, err := config.Load("", []string{
		"data.path=x", "optimizer.name=muon", "model.vocab=64", "optimizer.groups.matrix.lr_ratio=0",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := MeasureRun(cfg, device.Null{}); !refused(err) {
		t.Errorf("muon with frozen matrices is planned: %v", err)
	}
	cfg.Optimizer.Groups.Matrix.LRRatio = 1
	if _, err := MeasureRun(cfg, device.Null{}); err != nil {
		t.Errorf("muon is refused: %v", err)
	}
	cfg, err = config.Load("", []string{
		"data.path=x", "optimizer.name=muon", "model.vocab=64", "model.layers=4", "model.tie_embeddings=false",
		"parallel.pipeline=2", "parallel.ranks=2", "optimizer.patterns=layers.0.* lr_ratio=0; layers.1.* lr_ratio=0",
	})
	if err != nil {
		t.Fatal(err)
	}
	for rank := range 2 {
		if _, err := MeasureRank(cfg, device.Null{}, absent.New(rank, 2, true)); err != nil {
			t.Errorf("rank %d: muon is refused because the matrices of one stage are frozen: %v", rank, err)
		}
	}
	muon := NewOptimizer(cfg.Optimizer).(*optim.Muon)
	if err := checkMuon(cfg, muon, []*nn.Param{{Role: nn.Embedding}, {Role: nn.Norm}}); !refused(err) {
		t.Errorf("muon takes a model without matrices: %v", err)
	}
}
