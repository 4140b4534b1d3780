package train

import (
	"errors"
	"testing"

	"anneal/config"
)

func TestABudgetBelowTheLeanestLayoutIsAMistakeOfTheConfig(t *testing.T) {
	cfg := tinyConfig(testData(t))
	cfg.Model.Vocab, cfg.Memory.Recompute = 100, recomputing("budget:1KiB")
	_, err := recomputeLayout(cfg, cfg.Model)
	var p config.Problem
	if !errors.As(err, &p) || p.Key != "memory.recompute" {
		t.Errorf("%v", err)
	}
}
