package run

import (
	"path/filepath"
	"testing"

	"anneal/train/traintest"
)

// The losses of the routers are reported without their coefficients, and held down by them: experts that are chosen
// equally often have a balance of experts_per_token.
func TestRouterLossesAreReportedAndHold(t *testing.T) {
	data := traintest.Data(t)
	last := func(aux, z float64) (line map[string]any) {
		cfg := familyConfig("qwen3_moe", data)
		cfg.Train.Steps, cfg.Optimizer.LR = 40, 1e-2
		cfg.Model.RouterAuxLoss, cfg.Model.RouterZLoss = aux, z
		dir := filepath.Join(t.TempDir(), "run")
		mustRun(t, Options{Config: cfg, Dir: dir})
		lines := readMetrics(t, dir)
		first, line := lines[0], lines[len(lines)-1]
		if line["loss"].(float64) > 0.9*first["loss"].(float64) {
			t.Errorf("the loss goes from %v to %v", first["loss"], line["loss"])
		}
		return line
	}
	free, held := last(0, 0), last(1, 0.1)
	for _, name := range []string{"router_balance", "router_z_loss"} {
		a, b := free[name].(float64), held[name].(float64)
		t.Logf("%s %v without its loss, %v with it", name, a, b)
		if !(b < 0.95*a) {
			t.Errorf("%s is %v without its loss, %v with it", name, a, b)
		}
	}
	if b := held["router_balance"].(float64); b < 2-1e-6 || b > 2.2 {
		t.Errorf("the balance is %v, want near 2", b)
	}
}
