package pool

import (
	"slices"
	"time"
)

// A Simulation is what a step would take on more CPUs than there are. A pool that simulates workers does all tasks on
// the caller, one after the other, measures each, and says when workers beside each other would be through with them.
// What the caller does between jobs counts as it is: other workers have nothing to do then.
//
// It knows nothing of what CPUs share: memory, caches beyond their own, and power.
type Simulation struct {
	Jobs    int           // that more than one worker shared
	Tasks   int           // of those jobs
	Work    time.Duration // the tasks' time, added up
	Longest time.Duration // of each job the time of the worker that is through last, added up
	Handing time.Duration // to tell workers of jobs, and to hear that they are through
	Outside time.Duration // time outside of those jobs
}

// Total returns the time that all of it takes.
func (s *Simulation) Total() time.Duration { return s.Longest + s.Handing + s.Outside }

// handover is how long a cache line takes from one CPU to another, which are as far apart as two in one socket are.
// To start a job the caller writes a line of each worker, and to end it each writes the same line.
const handover = 100 * time.Nanosecond

// simulation is what a pool keeps of a simulation.
type simulation struct {
	loads   []time.Duration   // of each worker
	jobs    [][]time.Duration // the least time of every task of a step's jobs
	job     int               // that comes next
	outside time.Duration     // the least of a step
	so      time.Duration     // of this step, until begin
	begin   time.Time
}

// Simulate returns a pool that simulates workers on the caller.
func Simulate(workers int) *Pool {
	return &Pool{
		workers:   make([]worker, workers-1),
		simulated: &simulation{loads: make([]time.Duration, workers)},
	}
}

// BeginStep begins a step of a simulation. All steps have the same jobs.
func (p *Pool) BeginStep() {
	s := p.simulated
	s.job, s.so, s.begin = 0, 0, time.Now()
}

// EndStep ends a step, and returns what steps take. The time of a task is the least that it took in any of them, so
// that it does not count if another program took the CPU from it for a moment.
func (p *Pool) EndStep() Simulation {
	s := p.simulated
	s.so += time.Since(s.begin)
	if s.outside == 0 || s.so < s.outside {
		s.outside = s.so
	}
	r := Simulation{Jobs: s.job, Outside: s.outside}
	for _, times := range s.jobs[:s.job] {
		s.deal(times)
		for _, load := range s.loads {
			r.Work += load
		}
		r.Tasks += len(times)
		r.Longest += slices.Max(s.loads)
		r.Handing += 2 * time.Duration(min(len(s.loads), len(times))-1) * handover
	}
	return r
}

// deal deals tasks to the workers as if each took the next when it is through with one.
func (s *simulation) deal(times []time.Duration) {
	clear(s.loads)
	for _, d := range times {
		least := 0
		for w, load := range s.loads {
			if load < s.loads[least] {
				least = w
			}
		}
		s.loads[least] += d
	}
}

// run does the tasks of a job. A worker does as many as every other, one after the other, so that it finds in its cache
// what it left there.
func (s *simulation) run(tasks int, job Job) {
	last := time.Now()
	s.so += last.Sub(s.begin)
	if s.job == len(s.jobs) {
		s.jobs = append(s.jobs, nil)
	}
	times := s.jobs[s.job]
	if len(times) != tasks {
		times = slices.Repeat([]time.Duration{1 << 62}, tasks)
		s.jobs[s.job] = times
	}
	s.job++
	for i := range tasks {
		job.Do(i*len(s.loads)/tasks, i)
		now := time.Now()
		times[i] = min(times[i], now.Sub(last))
		last = now
	}
	s.begin = time.Now()
}
