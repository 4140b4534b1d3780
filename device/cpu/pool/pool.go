// Package pool runs the tasks of one kernel on a fixed set of workers. It decides who does a task, never what a task
// is: kernels cut their work by shape alone, so results do not depend on the number of threads.
package pool

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A Job is a kernel cut into tasks. Do is called once for every task, from worker numbers in [0, Threads), possibly at
// the same time; tasks must not depend on each other. The worker number selects scratch memory.
type Job interface{ Do(worker, task int) }

// A Pool is a set of workers that sleep while there is no work. Run must be called from one goroutine at a time; the
// caller is worker 0.
type Pool struct {
	wake []chan struct{} // one per extra worker
	done sync.WaitGroup

	job   Job
	tasks int64
	next  atomic.Int64
	fault atomic.Pointer[fault]
}

type fault struct{ text string }

// New starts a pool of the given number of workers, the caller included; 0 means one per CPU that Go may use.
func New(threads int) *Pool {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	p := &Pool{wake: make([]chan struct{}, threads-1)}
	for i := range p.wake {
		p.wake[i] = make(chan struct{}, 1)
		go p.worker(i+1, p.wake[i])
	}
	return p
}

// Threads returns the number of workers.
func (p *Pool) Threads() int { return len(p.wake) + 1 }

// Run does all tasks of the job and returns when they are complete. It does not allocate if job is a pointer.
func (p *Pool) Run(tasks int, job Job) {
	if tasks <= 1 || len(p.wake) == 0 {
		for i := range tasks {
			job.Do(0, i)
		}
		return
	}
	p.job, p.tasks = job, int64(tasks)
	p.next.Store(0)
	helpers := min(len(p.wake), tasks-1)
	p.done.Add(helpers)
	for _, c := range p.wake[:helpers] {
		c <- struct{}{}
	}
	p.work(0)
	p.done.Wait()
	p.job = nil
	if f := p.fault.Swap(nil); f != nil {
		panic(f.text)
	}
}

func (p *Pool) worker(id int, wake <-chan struct{}) {
	for range wake {
		p.work(id)
		p.done.Done()
	}
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
	for _, c := range p.wake {
		close(c)
	}
	p.wake = nil
}
