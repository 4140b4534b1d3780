package pool

import (
	"slices"
	"testing"
	"time"
)

// timed is a job whose tasks take given times.
type timed struct {
	times   []time.Duration
	workers []int
}

func (j *timed) Do(worker, task int) {
	j.workers[task] = worker
	compute(j.times[task])
}

func compute(d time.Duration) {
	for begin := time.Now(); time.Since(begin) < d; {
	}
}

// Tasks of 4, 3, 2, 1, 1 and 1 units finish after 4 units on three workers and after 6 on two. Time of the caller
// between jobs counts in full. An interrupted step reports the time of an uninterrupted one.
func TestASimulationDealsTasksToWorkers(t *testing.T) {
	const unit = 200 * time.Microsecond // short, so that some steps are not interrupted on a busy machine
	var times []time.Duration
	for _, n := range []time.Duration{4, 3, 2, 1, 1, 1} {
		times = append(times, n*unit)
	}
	for workers, want := range map[int]time.Duration{1: 12 * unit, 2: 6 * unit, 3: 4 * unit, 40: 4 * unit} {
		p := Simulate(workers)
		if p.Threads() != workers {
			t.Fatalf("%d workers, want %d", p.Threads(), workers)
		}
		j := &timed{times: times, workers: make([]int, len(times))}
		var s Simulation
		for step := range 40 {
			p.BeginStep()
			compute(time.Duration(1+step%2) * unit)
			p.Run(len(times), j)
			p.Run(1, j) // runs on the caller
			s = p.EndStep()
		}
		last := j.workers[len(times)-1]
		if !slices.IsSorted(j.workers) || last >= workers || workers > 1 && last == 0 {
			t.Errorf("%d workers did %v", workers, j.workers)
		}
		near := func(got, want time.Duration) bool { return got >= want && got < want+want/4 }
		if s.Jobs != 1 || s.Tasks != len(times) || !near(s.Work, 12*unit) || !near(s.Longest, want) ||
			!near(s.Outside, 5*unit) {
			t.Errorf("%d workers: %+v, want the longest to take %v, outside of %v", workers, s, want, 5*unit)
		}
		if want := 2 * handover * time.Duration(min(workers, len(times))-1); s.Handing != want {
			t.Errorf("%d workers: %v for handing over, want %v", workers, s.Handing, want)
		}
		p.Close()
	}
}
