package train

import (
	"context"
	"math"
	"strings"
	"testing"

	"anneal/config"
	"anneal/device/cpu"
)

// A configuration whose derived values are missing is refused.
func TestAnIncompleteConfigurationIsRefused(t *testing.T) {
	d, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, vocab := range []int{0, 300} {
		cfg := config.Default()
		cfg.Model.Vocab = vocab
		if _, err := New(cfg, d); err == nil || !strings.Contains(err.Error(), "call Resolve") {
			t.Errorf("%v", err)
		}
	}
}

// A step whose loss is not finite leaves weights, moments and Adam's count as they were.
func TestSkippedStepChangesNothing(t *testing.T) {
	p := loadParity(t)
	tr, src := parityTrainer(t, p, 0, "fp32", 1, 4)
	if _, err := tr.Step(context.Background(), src); err != nil {
		t.Fatal(err)
	}
	// A NaN in one embedding row makes the loss NaN; its own bits are restored before comparing.
	w := tr.Model().Params()[0].Value.F32()
	before, updates := hashes(tr), tr.Position().Updates
	keep := w[5]
	w[5] = float32(math.NaN())
	s, err := tr.Step(context.Background(), src)
	if err != nil || !s.Skipped {
		t.Fatalf("step with a NaN weight: skipped %v, %v", s.Skipped, err)
	}
	w[5] = keep
	if after := hashes(tr); after != before || tr.Position().Updates != updates || tr.Guard().NonFinite != 1 {
		t.Errorf("a skipped step changed the state: %v, %v; %d updates, %d non-finite",
			before, after, tr.Position().Updates, tr.Guard().NonFinite)
	}
}

func TestSpikeGuardSkipsAnOutlier(t *testing.T) {
	g := newGuard(config.Guard{SpikeZ: 4, Window: 64})
	for i := range 64 {
		if !g.accept(i+1, 2+0.01*float64(i%3), 1) {
			t.Fatalf("ordinary loss %d was skipped", i)
		}
	}
	if g.accept(65, 3, 1) {
		t.Error("a loss 100 standard deviations up was accepted")
	}
	if !g.accept(66, 2.01, 1) || g.Row != 0 || g.Skipped != 1 {
		t.Errorf("after the spike: row %d, skipped %d", g.Row, g.Skipped)
	}
}
