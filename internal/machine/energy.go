package machine

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Powercap is the directory with Linux's energy counters (RAPL) of processors.
const Powercap = "/sys/class/powercap"

// energyEvery is how often counters are read: they wrap around after some minutes of full load.
const energyEvery = 20 * time.Second

// An Energy meter adds up the energy that the processors of this machine use for all programs, and their memory's if
// it is counted. It does not read the counters of cores and graphics, which are parts of a processor, or the counter
// of the whole platform (psys), which overlaps with all others. A nil meter returns NaN.
type Energy struct {
	begun  time.Time
	mu     sync.Mutex
	zones  []zone
	joules float64
	lost   bool // a counter could not be read after the start
	stop   chan struct{}
}

// A zone is a counter. It counts microjoules from 0 up to most, then begins again at 0.
type zone struct {
	file       string
	last, most uint64
}

// MeasureEnergy starts a meter on the counters below a directory such as Powercap; it returns nil if a counter cannot
// be read, which often needs the rights of an administrator.
func MeasureEnergy(dir string) *Energy {
	list, _ := filepath.Glob(filepath.Join(dir, "intel-rapl:*")) // AMD's, too
	e := &Energy{begun: time.Now(), stop: make(chan struct{})}
	for _, d := range list {
		name, err := os.ReadFile(filepath.Join(d, "name"))
		kind := strings.TrimSpace(string(name))
		if err != nil || !strings.HasPrefix(kind, "package") && kind != "dram" {
			continue
		}
		z := zone{file: filepath.Join(d, "energy_uj")}
		most, err := readCounter(filepath.Join(d, "max_energy_range_uj"))
		if err == nil {
			z.last, err = readCounter(z.file)
		}
		if err != nil {
			return nil // a sum without one of its parts would be wrong
		}
		z.most = most
		e.zones = append(e.zones, z)
	}
	if len(e.zones) == 0 {
		return nil
	}
	go e.watch()
	return e
}

func (e *Energy) watch() {
	tick := time.NewTicker(energyEvery)
	defer tick.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-tick.C:
			e.Joules()
		}
	}
}

// Joules returns the energy used since the meter started; NaN if it is unknown.
func (e *Energy) Joules() float64 {
	if e == nil {
		return math.NaN()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.zones {
		z := &e.zones[i]
		now, err := readCounter(z.file)
		if err != nil || now < z.last && z.most < z.last {
			e.lost = true
			break
		}
		used := now - z.last
		if now < z.last {
			used = z.most - z.last + now + 1
		}
		e.joules += float64(used) / 1e6
		z.last = now
	}
	if e.lost {
		return math.NaN()
	}
	return e.joules
}

// Watts returns the average power of a number of joules used since the meter started.
func (e *Energy) Watts(joules float64) float64 {
	if e == nil {
		return math.NaN()
	}
	return joules / max(time.Since(e.begun).Seconds(), 1e-3)
}

// Stop ends the meter. It may be nil.
func (e *Energy) Stop() {
	if e != nil {
		close(e.stop)
	}
}

func readCounter(file string) (uint64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 63)
	if err != nil {
		return 0, errors.New(file + " holds no counter")
	}
	return n, nil
}
