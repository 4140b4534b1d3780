package run

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// Weights are held by their importance: the stronger, the nearer they stay to where they began. A run that is resumed
// ends with the bits of one that was never stopped.
func TestEWCHoldsWeights(t *testing.T) {
	data := traintest.Data(t)
	from, _ := trainedRun(t, data, "checkpoint.every=2", "checkpoint.keep=10")
	began := startedFrom(t, initConfig(t, from, data))
	moved := func(strength string) (far float64) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "run")
		want := mustRun(t, Options{
			Dir: dir, Config: initConfig(t, from, data, "init.ewc="+strength, "init.ewc_step=2",
				"optimizer.weight_decay=0"),
		})
		if got := resumedAt(t, dir, 2); got.WeightsHash != want.WeightsHash || got.OptimizerHash != want.OptimizerHash {
			t.Errorf("init.ewc = %s: resumed it ends with other weights", strength)
		}
		ended := startedFrom(t, initConfig(t, dir, data))
		for i, p := range ended.Model().Params() {
			was := &began.Model().Params()[i].Value
			for k := range p.Value.Len() {
				far += math.Abs(p.Value.Float64(k) - was.Float64(k))
			}
		}
		return far
	}
	free, held, tight := moved("0.01"), moved("1e6"), moved("1e12")
	most := moved("1e15") // that is allowed
	if held > 0.8*free || tight > 0.2*free || !(most <= tight) {
		t.Errorf("weights move by %.1f in all, with more strength %.1f, %.1f and %.1f", free, held, tight, most)
	}
}

// What cannot be held is said, with the key.
func TestEWCNeedsSecondMoments(t *testing.T) {
	data := traintest.Data(t)
	lion, _ := trainedRun(t, data, "optimizer.name=lion")
	adamw, _ := trainedRun(t, data)
	for _, c := range []struct {
		from, overrides, want string
	}{
		{lion, "init.ewc=1", "no second moments for all weights: it was trained with lion"},
		{adamw, "init.ewc=1 init.ewc_step=3", "init.ewc_step = 3"},
		{adamw, "init.ewc=1 optimizer.name=muon", "init.ewc does not work with optimizer.name = muon"},
		{adamw, "init.ewc=1 parallel.ranks=2", "does not yet work with several ranks"},
		{adamw, "init.ewc_step=2", "without init.ewc"},
		{adamw, "init.ewc=-1", "outside"},
		{adamw, "init.ewc=1e30", "outside"},
	} {
		cfg, err := loadInit(c.from, data, strings.Fields(c.overrides)...)
		if err == nil {
			_, err = Run(context.Background(), Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
		}
		var problem config.Problem
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", c.overrides, err, c.want)
		} else if errors.As(err, &problem) && !strings.HasPrefix(problem.Key, "init.ewc") {
			t.Errorf("%s: the key is %s", c.overrides, problem.Key)
		}
	}
}
