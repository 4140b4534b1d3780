package train

import (
	"path/filepath"
	"testing"
)

// MUP-2: with the base model's own sizes muP is the standard parametrisation, bit for bit, weights and optimizer
// state.
func TestMuPOfTheBaseModelChangesNoBit(t *testing.T) {
	for _, name := range optimizers(t) {
		var own []string
		switch name {
		case "adafactor", "sophia":
			continue // refused
		case "muon":
			own = []string{"optimizer.muon_scale=spectral_mup"}
		}
		for _, more := range [][]string{nil, {"model.qk_norm=true", "model.tie_embeddings=false"}, {"model.init=small", "model.zero_init=residual"}} {
			own := append(own, more...)
			plain, src := optimizerTrainer(t, name, own...)
			mup, _ := optimizerTrainer(t, name, append([]string{"model.mup=true", "model.mup_base_dim=64", "model.mup_base_layers=2"}, own...)...)
			steps(t, plain, src, 5)
			steps(t, mup, src, 5)
			if got, want := hashes(mup), hashes(plain); got != want {
				t.Errorf("%s %v: after 5 steps hashes are %v with muP, %v without", name, more, got, want)
			}
		}
	}
}

// Every multiplier has its place in the exported weights: the self-check of the export and the way back find the same
// model.
func TestExportFoldsMuP(t *testing.T) {
	cfg := tinyConfig(testData(t))
	m := &cfg.Model
	m.MuP, m.MuPBaseDim, m.MuPBaseHeadDim, m.MuPBaseFFN, m.MuPInputScale, m.MuPOutputScale = true, 16, 8, 64, 2, 3
	dir, out, back := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "hf"), filepath.Join(t.TempDir(), "back")
	mustRun(t, Options{Config: cfg, Dir: dir})
	r, err := Open(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	report, err := r.ExportHF(out, "F32")
	if err != nil {
		t.Fatal(err)
	}
	if !(report.MaxLogitDiff > 0 && report.MaxLogitDiff < 1e-4) {
		t.Errorf("logits of the export differ by %v; want something that rounding explains", report.MaxLogitDiff)
	}
	if _, err := ImportHF(out, back, ""); err != nil {
		t.Fatal(err)
	}
	if got, want := generateText(t, back, ""), generateText(t, dir, ""); got != want {
		t.Errorf("the imported model writes %q, the original %q", got, want)
	}
}
