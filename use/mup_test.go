package use

import (
	"path/filepath"
	"testing"

	"anneal/run"
	"anneal/train/traintest"
)

// Every multiplier has its place in the exported weights: the self-check of the export and the way back find the same
// model.
func TestExportFoldsMuP(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	m := &cfg.Model
	m.MuP, m.MuPBaseDim, m.MuPBaseHeadDim, m.MuPBaseFFN, m.MuPInputScale, m.MuPOutputScale = true, 16, 8, 64, 2, 3
	dir, out, back := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "hf"),
		filepath.Join(t.TempDir(), "back")
	mustRun(t, run.Options{Config: cfg, Dir: dir})
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
	if _, err := run.ImportHF(out, back, ""); err != nil {
		t.Fatal(err)
	}
	if got, want := generateText(t, back, ""), generateText(t, dir, ""); got != want {
		t.Errorf("the imported model writes %q, the original %q", got, want)
	}
}
