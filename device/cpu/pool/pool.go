// Package pool runs the tasks of one kernel on a fixed set of workers. It decides which worker does a task, but not
// how work is divided into tasks: kernels cut their work by shape alone, so results do not depend on the number of
// threads.
package pool

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// A Job is a kernel cut into tasks. Do is called once for every task, from worker numbers in [0, Threads), possibly at
// the same time; tasks must not depend on each other. The worker number selects scratch memory.
type Job interface{ Do(worker, task int) }

// patience is how long an idle worker polls for work before it sleeps. The next kernel of a step usually follows
// within microseconds. But if another program takes a CPU from one worker for a moment, the others wait, and waking
// them again costs more than that moment. A server whose client runs on the same two CPUs generates 65 to 80 tokens/s
// for one sequence with 50 µs, and 90 with 200 µs to 2 ms.
const patience = 300 * time.Microsecond

// awake counts the workers of all pools that do not sleep. If there are more than CPUs, no worker polls, because it
// would keep a CPU from a worker with work.
var awake atomic.Int64

// A Pool is a set of workers that sleep while there is no work. Run must be called from one goroutine at a time; the
// caller is worker 0.
type Pool struct {
	cpus    int64
	workers []worker // the extra ones
	busy    atomic.Int64
	waiting atomic.Bool   // the caller sleeps until busy is 0 …
	idle    chan struct{} // … and is woken through this channel

	job   Job
	tasks int64
	next  atomic.Int64
	fault atomic.Pointer[fault]

	simulated *simulation // of workers that do not exist; nil if they do
}

// worker is the state that the caller shares with an extra worker.
type worker struct {
	state atomic.Int32
	wake  chan struct{}
	_     [48]byte // each worker fills a cache line
}

// States of a worker.
const (
	watching = iota // for work
	asleep          // until it is woken
	called          // to work
	dismissed
)

type fault struct{ text string }

// New starts a pool of the given number of workers, the caller included; 0 means one per CPU that Go may use.
func New(threads int) *Pool {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	p := &Pool{
		cpus: int64(runtime.GOMAXPROCS(0)), workers: make([]worker, threads-1), idle: make(chan struct{}, 1),
	}
	for i := range p.workers {
		p.workers[i].wake = make(chan struct{}, 1)
		go p.serve(i+1, &p.workers[i])
	}
	return p
}

// Threads returns the number of workers.
func (p *Pool) Threads() int { return len(p.workers) + 1 }

// Run does all tasks of the job and returns when they are complete. It does not allocate if job is a pointer.
func (p *Pool) Run(tasks int, job Job) {
	if p.simulated != nil && tasks > 1 {
		p.simulated.run(tasks, job)
		return
	}
	if tasks <= 1 || len(p.workers) == 0 {
		p.RunAlone(tasks, job)
		return
	}
	awake.Add(1)
	p.job, p.tasks = job, int64(tasks)
	p.next.Store(0)
	helpers := p.workers[:min(len(p.workers), tasks-1)]
	p.busy.Store(int64(len(helpers)))
	for i := range helpers {
		helpers[i].tell(called)
	}
	p.work(0)
	p.await()
	awake.Add(-1)
	p.job = nil
	if f := p.fault.Swap(nil); f != nil {
		panic(f.text)
	}
}

// RunAlone does all tasks of the job on the caller, for jobs so short that sharing them would take longer.
func (p *Pool) RunAlone(tasks int, job Job) {
	for i := range tasks {
		job.Do(0, i)
	}
}

func (p *Pool) serve(id int, w *worker) {
	awake.Add(1)
	defer awake.Add(-1)
	for p.listen(w) == called {
		w.state.Store(watching)
		p.work(id)
		if p.busy.Add(-1) == 0 && p.waiting.CompareAndSwap(true, false) {
			p.idle <- struct{}{}
		}
	}
}

// tell sets the state of a worker, and wakes it.
func (w *worker) tell(state int32) {
	if w.state.Swap(state) == asleep {
		w.wake <- struct{}{}
	}
}

// listen waits until the state of the worker changes, and returns the new state.
func (p *Pool) listen(w *worker) int32 {
	told := func() bool { return w.state.Load() != watching }
	if !p.soon(told) && w.state.CompareAndSwap(watching, asleep) {
		awake.Add(-1)
		<-w.wake
		awake.Add(1)
	}
	return w.state.Load()
}

// await returns when no extra worker is busy.
func (p *Pool) await() {
	if p.soon(func() bool { return p.busy.Load() == 0 }) {
		return
	}
	// A worker that lost its CPU between the two steps by which it ends a job can take the next job's wait for that
	// job's, and wake the caller too early.
	for p.busy.Load() > 0 {
		p.waiting.Store(true)
		if p.busy.Load() > 0 || !p.waiting.CompareAndSwap(true, false) {
			<-p.idle
		}
	}
}

// soon polls a condition for up to patience, and reports whether it is met. Between polls it yields the CPU; otherwise
// two processes on the same CPUs would take half as long again.
func (p *Pool) soon(met func() bool) bool {
	if met() {
		return true
	}
	if awake.Load() > p.cpus {
		return false
	}
	for begin := time.Now(); time.Since(begin) < patience; {
		if met() {
			return true
		}
		yield()
	}
	return false
}

// work does tasks until none is left. It keeps a panic for the caller's goroutine to report, with the worker's stack,
// which would otherwise be lost.
func (p *Pool) work(id int) {
	defer func() {
		if r := recover(); r != nil {
			p.fault.CompareAndSwap(nil, &fault{fmt.Sprintf("%v (in worker %d)\n%s", r, id, debug.Stack())})
		}
	}()
	for p.fault.Load() == nil {
		i := p.next.Add(1) - 1
		if i >= p.tasks {
			return
		}
		p.job.Do(id, int(i))
	}
}

// Close ends the workers. A closed pool still runs jobs, on the caller alone.
func (p *Pool) Close() {
	if p.simulated != nil {
		return
	}
	for i := range p.workers {
		p.workers[i].tell(dismissed)
	}
	p.workers = nil
}
