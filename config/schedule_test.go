package config

import (
	"strings"
	"testing"
)

// A decay that the warmup leaves no step for is told of. One step of it is enough, and a run too short for one has
// none to lose.
func TestAWarmupWithoutADecayIsRemarked(t *testing.T) {
	for set, told := range map[string]bool{
		"schedule.name=wsd schedule.warmup=40 train.steps=40":    true,
		"schedule.name=power schedule.warmup=40 train.steps=40":  true,
		"schedule.name=wsd schedule.warmup=40 train.steps=41":    false,
		"schedule.name=cosine schedule.warmup=40 train.steps=40": false,
		"schedule.name=wsd train.steps=1":                        false,
	} {
		cfg, err := parse([]byte(minimal), "run.yaml", splitSettings(set))
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(cfg.Remarks(), "\n"); strings.Contains(said, "the rate does not decay") != told {
			t.Errorf("%s: remarks %q", set, said)
		}
	}
}
