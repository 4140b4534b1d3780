package machine

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// counters writes a directory in Linux's layout, of zones with their names and their counters in microjoules.
func counters(t *testing.T, zones map[string]string) (dir string, set func(zone string, uj int)) {
	t.Helper()
	dir = t.TempDir()
	write := func(zone, file, text string) {
		path := filepath.Join(dir, zone, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set = func(zone string, uj int) { write(zone, "energy_uj", fmt.Sprint(uj)) }
	for zone, name := range zones {
		write(zone, "name", name)
		write(zone, "max_energy_range_uj", "99999999")
		set(zone, 90_000_000)
	}
	return dir, set
}

// The energy of processors and their memory is added up, also when a counter wraps around. Zones that are part of
// these, or contain them, are not counted.
func TestEnergyIsTheSumOfProcessorsAndMemory(t *testing.T) {
	dir, set := counters(t, map[string]string{
		"intel-rapl:0": "package-0", "intel-rapl:1": "package-1", "intel-rapl:0:0": "core", "intel-rapl:0:2": "dram",
		"intel-rapl:2": "psys", "intel-rapl-mmio:0": "package-0",
	})
	e := MeasureEnergy(dir)
	if e == nil {
		t.Fatal("no counters are found")
	}
	defer e.Stop()
	if got := e.Joules(); got != 0 {
		t.Errorf("%g J are used at the start", got)
	}
	set("intel-rapl:0", 95_000_000)
	set("intel-rapl:1", 4_000_000) // wrapped: 10 J to the end and 4 J
	set("intel-rapl:0:2", 90_500_000)
	set("intel-rapl:0:0", 99_000_000)
	set("intel-rapl:2", 99_000_000)
	set("intel-rapl-mmio:0", 99_000_000)
	if got := e.Joules(); math.Abs(got-19.5) > 1e-6 {
		t.Errorf("%g J are used, want 19.5", got)
	}
	set("intel-rapl:0", 1_000_000)
	if got := e.Joules(); math.Abs(got-25.5) > 1e-6 {
		t.Errorf("%g J are used, want 25.5", got)
	}
	if err := os.Remove(filepath.Join(dir, "intel-rapl:1", "energy_uj")); err != nil {
		t.Fatal(err)
	}
	if got := e.Joules(); !math.IsNaN(got) {
		t.Errorf("a counter is gone, and %g J are used", got)
	}
}

// The average power is that since the meter started, however long the program has run before.
func TestPowerIsThatSinceTheMeterStarted(t *testing.T) {
	dir, _ := counters(t, map[string]string{"intel-rapl:0": "package-0"})
	before := time.Now()
	time.Sleep(100 * time.Millisecond)
	begun := time.Now()
	e := MeasureEnergy(dir)
	defer e.Stop()
	time.Sleep(10 * time.Millisecond)
	least := 100 / time.Since(begun).Seconds()
	if got, whole := e.Watts(100), 100/time.Since(before).Seconds(); got < least/2 || got < whole || got > 1e4 {
		t.Errorf("100 J are %g W, want some %g, not %g", got, least, whole)
	}
}

// Without counters, or with an unreadable one, the energy is unknown.
func TestEnergyIsUnknownWithoutCounters(t *testing.T) {
	dir, _ := counters(t, map[string]string{"intel-rapl:0": "package-0", "intel-rapl:1": "package-1"})
	if err := os.WriteFile(filepath.Join(dir, "intel-rapl:1", "energy_uj"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	none, _ := counters(t, map[string]string{"intel-rapl:0": "psys"})
	for _, d := range []string{dir, none, t.TempDir(), "/nonexistent"} {
		e := MeasureEnergy(d)
		if e != nil || !math.IsNaN(e.Joules()) {
			t.Errorf("%s: %+v", d, e)
		}
		e.Stop()
	}
}
