package run

import (
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// What embeddings have of the token before is trained by any number of ranks to the same bits, whoever owns the table
// of pairs.
func TestRanksTrainBigramsAndSmearToTheSameBits(t *testing.T) {
	data := traintest.Data(t)
	make := func(ranks, zero int) *config.Config {
		cfg := ranksConfig(data, ranks)
		cfg.Model.Family, cfg.Model.Activation, cfg.Model.Bigram, cfg.Model.Smear = "anneal", "relu2", 100, true
		cfg.Parallel.Zero = zero
		return cfg
	}
	one := mustRun(t, Options{Config: make(1, 0), Dir: filepath.Join(t.TempDir(), "run")})
	for _, x := range [][2]int{{2, 0}, {2, 1}, {3, 2}, {2, 3}} {
		wantHash(t, mustRun(t, Options{
			Config: make(x[0], x[1]), Dir: filepath.Join(t.TempDir(), "run"), Threads: 4,
		}), [2]string{one.WeightsHash, one.OptimizerHash})
	}
}
