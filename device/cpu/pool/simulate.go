package pool

import (
	"slices"
	"time"
)

// A Simulation is the time that a step would take on more CPUs than the machine has. A pool that simulates workers
// does all tasks on the caller, one after the other, measures each, and computes when parallel workers would finish
// them. The caller's time between jobs counts in full, because other workers are then idle.
//
// It does not model resources that CPUs share: memory bandwidth, shared caches, and power. Nor does it see work that
// the tasks of a job deal out among themselves, as products of at most 16 rows do: the first task then counts for all.
type Simulation struct {
	Jobs    int           // jobs that more than one worker shared
	Tasks   int           // of those jobs
	Work    time.Duration // the tasks' time, added up
	Longest time.Duration // the sum over jobs of the time of the worker that finishes last
	Handing time.Duration // to start the workers of jobs, and to learn that they have finished
	Outside time.Duration // time outside of those jobs
}

// Total returns the sum of these times.
func (s *Simulation) Total() time.Duration { return s.Longest + s.Handing + s.Outside }

// handover is the time to move a cache line between two CPUs of one socket. To start a job the caller writes a line of
// each worker, and to end it each worker writes the same line.
const handover = 100 * time.Nanosecond

// simulation is the state of a pool's simulation.
type simulation struct {
	loads   []time.Duration   // of each worker
	jobs    [][]time.Duration // the least time of every task of a step's jobs
	job     int               // the next job
	outside time.Duration     // the least of a step
	so      time.Duration     // outside time of this step, until begin
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

// EndStep ends a step, and returns what steps take. The time of a task is its least time in any step, so that
// interruptions by other programs do not count.
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

// deal assigns tasks to workers as if each took the next task when it finishes one.
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

// run does the tasks of a job. Each simulated worker does an equal number of consecutive tasks, so that it finds its
// data in the cache.
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
