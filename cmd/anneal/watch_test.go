package main

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A trained run has a report and can be watched; a mistake is one clear error.
func TestWatchAndReport(t *testing.T) {
	w := newWorkshop(t)
	dir, out := w.path("runs/a"), w.path("new/report.html")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", dir)
	page, err := os.ReadFile(w.path("runs/a/report.html"))
	if err != nil || !strings.Contains(string(page), `"step":20`) {
		t.Errorf("the report of the run: %v", err)
	}
	if !strings.Contains(string(page), `"exit":{"code":0`) {
		t.Error("the report does not say how the run ended")
	}
	w.object(exitOK, "ckpt", "verify", dir)
	v := w.object(exitOK, "watch", w.path("runs"))["runs"].([]any)[0].(map[string]any)
	if v["state"] != "finished" || v["step"] != 20.0 || v["flops"].(float64) <= 0 || v["seconds"].(float64) <= 0 ||
		len(v["checkpoints"].([]any)) == 0 || len(v["phase_seconds"].(map[string]any)) == 0 {
		t.Errorf("watch says %v", v)
	}
	w.keys(w.object(exitOK, "report", dir, "--out", out), "out", "runs", "seconds")
	if _, err := os.Stat(out); err != nil {
		t.Error(err)
	}

	w.object(exitUsage, "watch", t.TempDir())
	w.object(exitUsage, "report", w.path("gone"), "--out", out)
	w.object(exitUsage, "watch", dir, "--tty")
	code, _, errs := anneal("watch", dir, "--tty")
	if code != exitUsage || !strings.Contains(errs, "needs a terminal") {
		t.Errorf("--tty without a terminal: exit %d\n%s", code, errs)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := strconv.Itoa(busy.Addr().(*net.TCPAddr).Port)
	if code, _, errs := anneal("watch", dir, "--port", port); code != exitUsage || !strings.Contains(errs, "in use") {
		t.Errorf("a port in use: exit %d\n%s", code, errs)
	}
}
