package train

import (
	"errors"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

func TestABudgetBelowTheLeanestLayoutIsAMistakeOfTheConfig(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	cfg.Model.Vocab, cfg.Memory.Recompute = 100, recomputing("budget:1KiB")
	_, err := recomputeLayout(cfg, cfg.Model)
	var p config.Problem
	if !errors.As(err, &p) || p.Key != "memory.recompute" {
		t.Errorf("%v", err)
	}
}
