package run

import (
	"math"
	"path/filepath"
	"testing"

	"anneal/train/traintest"
)

// z-loss is reported apart: the loss of the first step is that of a run without it, to the bit, and the mean of log²Z
// of weights that know nothing yet is log²V. It then keeps log Z smaller than it would be.
func TestZLossIsReportedApartAndHolds(t *testing.T) {
	data := traintest.Data(t)
	run := func(coefficient float64) ([]map[string]any, float64) {
		cfg, dir := traintest.Config(data), filepath.Join(t.TempDir(), "run")
		cfg.Train.ZLoss, cfg.Train.EvalTokens = coefficient, 256
		r := mustRun(t, Options{Config: cfg, Dir: dir})
		return readMetrics(t, dir), r.ValLoss
	}
	plain, _ := run(0)
	const coefficient, faint = 0.05, 1e-9
	free, _ := run(faint)
	with, val := run(coefficient)
	if _, there := plain[0]["z_loss"]; there || plain[0]["loss"] != with[0]["loss"] ||
		plain[0]["grad_norm"] == with[0]["grad_norm"] {
		t.Errorf("first step without %v\nwith %v", plain[0], with[0])
	}
	first, last := with[0]["z_loss"].(float64)/coefficient, with[39]["z_loss"].(float64)/coefficient
	if want := math.Pow(math.Log(320), 2); math.Abs(first/want-1) > 0.01 {
		t.Errorf("log²Z at the start is %v, want %v", first, want)
	}
	t.Logf("log²Z %.2f → %.2f, without z-loss %.2f; loss %v, without %v",
		first, last, free[39]["z_loss"].(float64)/faint, with[39]["loss"], plain[39]["loss"])
	if unheld := free[39]["z_loss"].(float64) / faint; last > 0.95*unheld ||
		with[39]["loss"].(float64) > 1.1*plain[39]["loss"].(float64) {
		t.Errorf("log²Z went to %v instead of %v, the loss to %v instead of %v",
			last, unheld, with[39]["loss"], plain[39]["loss"])
	}
	if got := with[39]["val_loss"]; got != val || val > 1.2*with[39]["loss"].(float64) {
		t.Errorf("validation loss %v beside %v: it must not have the z-loss", got, with[39])
	}
}
