package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A run reports the energy that the counters of the machine show, and nothing where there are none.
func TestARunReportsTheEnergyThatCountersShow(t *testing.T) {
	was := powercap
	t.Cleanup(func() { powercap = was })
	powercap = t.TempDir()
	zone := filepath.Join(powercap, "intel-rapl:0")
	write := func(file, text string) {
		path := filepath.Join(zone, file)
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Error(err)
		}
	}
	if err := os.Mkdir(zone, 0o700); err != nil {
		t.Fatal(err)
	}
	write("name", "package-0\n")
	write("max_energy_range_uj", "262143328850\n")
	write("energy_uj", "1000000000\n")
	stop, stopped := make(chan bool), make(chan bool)
	go func() { // 1 J every millisecond
		defer close(stopped)
		for joules := 1000; ; joules++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				write("energy_uj", fmt.Sprintf("%d000000\n", joules))
			}
		}
	}()
	w := newWorkshop(t)
	w.goSource()
	code, out, errs := anneal("train", w.path("run.yaml"), "--out", w.path("measured"), "--json")
	close(stop)
	<-stopped
	var result struct {
		Joules *float64 `json:"energy_joules"`
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v\n%s", code, err, errs)
	}
	if result.Joules == nil || !(*result.Joules > 1) || !strings.Contains(errs, "W on average") {
		t.Errorf("no energy is reported: %s\n%s", out, errs)
	}
	powercap = t.TempDir()
	code, out, errs = anneal("train", w.path("run.yaml"), "--out", w.path("unmeasured"), "--json")
	if code != exitOK || strings.Contains(out, "energy") || strings.Contains(errs, "energy") {
		t.Errorf("exit %d, energy is reported without counters: %s\n%s", code, out, errs)
	}
}
