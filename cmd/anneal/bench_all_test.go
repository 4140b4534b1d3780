package main

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"anneal/device/cpu/gemm"
)

// Figures whose share of the peak fell are named, the largest fall first, and --within turns a fall into an exit code.
func TestBenchDiffNamesWhatSlowed(t *testing.T) {
	w := newWorkshop(t)
	for name, share := range map[string]string{"before": "0.8", "after": "0.4"} {
		text := `{"cpu":"A","kernels":"avx2","threads":2,"version":"1","figures":[
			{"name":"step/tiny/bf16/2","value":1000,"unit":"tokens/s","share":` + share + `},
			{"name":"gemm/nt/bf16/1","value":100,"unit":"GFLOP/s","share":0.9}]}`
		if err := os.WriteFile(w.path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, after := w.path("before"), w.path("after")
	d := w.object(exitOK, "bench", "diff", before, after)
	first := d["changes"].([]any)[0].(map[string]any)
	if first["name"] != "step/tiny/bf16/2" || first["ratio"] != 0.5 || d["median_ratio"] != 1.0 {
		t.Errorf("%v", d)
	}
	code, out, errs := anneal("bench", "diff", before, after, "--within", "40")
	if code != exitCheck || !strings.Contains(out, "-50.0 %") ||
		!strings.Contains(errs, "1 figure fell by more than 40 %; the largest fall is step/tiny/bf16/2, by 50 %") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	for _, args := range [][]string{
		{before, before, "--within", "5"}, {before, after, "--within", "51"}, {after, before, "--within", "5"},
	} {
		if code, _, errs := anneal(append([]string{"bench", "diff"}, args...)...); code != exitOK {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
	if code, _, errs := anneal("bench", "diff", w.path("run.yaml"), after); code != exitData ||
		!strings.Contains(errs, "is not a result of `anneal bench all`") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs := anneal("bench", "diff", before, after, "--within", "100"); code != exitUsage {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs := anneal("bench", "diff", before, after, "--within", "0"); code != exitCheck {
		t.Errorf("--within 0: exit %d: %s", code, errs)
	}
	text := `{"figures":[{"name":"step/demo/bf16/2","value":1000,"unit":"tokens/s","share":0.5}]}`
	if err := os.WriteFile(w.path("other"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := anneal("bench", "diff", before, w.path("other")); code != exitData ||
		!strings.Contains(errs, "no figure in common") {
		t.Errorf("nothing in common: exit %d: %s", code, errs)
	}
}

// Each number of threads is measured once, and none above the number of CPUs.
func TestBenchesUseNoMoreThreadsThanCPUs(t *testing.T) {
	w, cpus := newWorkshop(t), runtime.GOMAXPROCS(0)
	products := w.object(exitOK, "bench", "gemm", "--threads", "300,301", "--seconds", "0")
	if n := len(products["cases"].([]any)); n != 2*len(gemm.Cases()) || products["threads"] != float64(cpus) {
		t.Errorf("%d products on %v threads, want %d on %d", n, products["threads"], 2*len(gemm.Cases()), cpus)
	}
	attention := w.object(exitOK, "bench", "attention", "full", "--threads", "300", "--lengths", "32", "--seconds", "0")
	if attention["threads"] != float64(cpus) {
		t.Errorf("attention on %v threads, want %d", attention["threads"], cpus)
	}
}
