package pool

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"anneal/internal/filetest"
)

type count struct{ hits []atomic.Int32 }

func (c *count) Do(worker, task int) { c.hits[task].Add(1) }

func TestEveryTaskRunsOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		p := New(threads)
		for _, tasks := range []int{0, 1, 2, 3, 64, 1000} {
			c := &count{hits: make([]atomic.Int32, tasks)}
			p.Run(tasks, c)
			for i := range c.hits {
				if n := c.hits[i].Load(); n != 1 {
					t.Fatalf("%d threads, %d tasks: task %d ran %d times", threads, tasks, i, n)
				}
			}
		}
		p.Close()
	}
}

// exclusive fails if a worker number is out of range or used by two tasks at once, because it selects scratch memory.
type exclusive struct {
	busy  []atomic.Int32
	wrong atomic.Int32
}

func (e *exclusive) Do(worker, task int) {
	if worker < 0 || worker >= len(e.busy) || e.busy[worker].Add(1) != 1 {
		e.wrong.Add(1)
		return
	}
	runtime.Gosched()
	e.busy[worker].Add(-1)
}

func TestAWorkerNumberIsForOneTaskAtATime(t *testing.T) {
	p := New(4)
	defer p.Close()
	e := &exclusive{busy: make([]atomic.Int32, p.Threads())}
	for range 50 {
		p.Run(64, e)
	}
	if n := e.wrong.Load(); n != 0 {
		t.Errorf("%d tasks of %d shared a worker number or had none", n, 50*64)
	}
}

func TestClosedPoolRunsOnTheCaller(t *testing.T) {
	p := New(3)
	p.Close()
	c := &count{hits: make([]atomic.Int32, 10)}
	p.Run(10, c)
	for i := range c.hits {
		if n := c.hits[i].Load(); n != 1 {
			t.Errorf("task %d ran %d times", i, n)
		}
	}
}

// held keeps the extra worker in its task until it is released.
type held struct {
	begun, release chan struct{}
	done           atomic.Int32
}

func (h *held) Do(worker, _ int) {
	if worker == 0 {
		<-h.begun
	} else {
		close(h.begun)
		<-h.release
	}
	h.done.Add(1)
}

// A worker counts itself out of a job and then looks whether the caller sleeps. If the system takes its CPU in between,
// the caller may sleep for the next job by then. Here the test wakes the caller as that worker would.
func TestRunOutlastsALateWakeUp(t *testing.T) {
	p := New(2)
	defer p.Close()
	h := &held{begun: make(chan struct{}), release: make(chan struct{})}
	go func() {
		for !p.waiting.CompareAndSwap(true, false) {
			runtime.Gosched()
		}
		p.idle <- struct{}{}
		time.Sleep(10 * time.Millisecond)
		close(h.release)
	}()
	p.Run(2, h)
	if n := h.done.Load(); n != 2 {
		t.Errorf("Run returned when %d of 2 tasks were done", n)
	}
}

// Between kernels workers poll for a while and then sleep; a job may arrive before, while or after they fall asleep.
func TestWorkersTakeAJobWheneverItComes(t *testing.T) {
	p := New(3)
	defer p.Close()
	c := &count{hits: make([]atomic.Int32, 3)}
	for i := range 300 {
		for begin := time.Now(); time.Since(begin) < time.Duration(i)*patience/150; {
		}
		p.Run(3, c)
		for k := range c.hits {
			if n := c.hits[k].Load(); n != int32(i+1) {
				t.Fatalf("task %d ran %d times in %d jobs", k, n, i+1)
			}
		}
	}
}

// slow has one task that takes longer than any worker's patience.
type slow struct{ done atomic.Int32 }

func (s *slow) Do(worker, task int) {
	if task == 1 {
		time.Sleep(4 * patience)
	}
	s.done.Add(1)
}

func TestTheCallerWaitsForTheLastTask(t *testing.T) {
	p := New(2)
	defer p.Close()
	for range 20 {
		s := &slow{}
		p.Run(2, s)
		if n := s.done.Load(); n != 2 {
			t.Fatalf("Run returned after %d of 2 tasks", n)
		}
	}
}

// Pools with more workers than CPUs make progress together, and closing them ends their workers, asleep or not.
func TestManyPoolsAtOnce(t *testing.T) {
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			p := New(runtime.GOMAXPROCS(0) + 1)
			c := &count{hits: make([]atomic.Int32, 16)}
			for range 200 {
				p.Run(16, c)
			}
			time.Sleep(time.Duration(i) * patience)
			p.Close()
			for k := range c.hits {
				if n := c.hits[k].Load(); n != 200 {
					t.Errorf("task %d ran %d times in 200 jobs", k, n)
				}
			}
		})
	}
	all.Wait()
	for begin := time.Now(); runtime.NumGoroutine() > before || awake.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 5*time.Second {
			t.Fatalf("%d goroutines, %d before; %d awake", runtime.NumGoroutine(), before, awake.Load())
		}
	}
}

type failing struct{}

func (failing) Do(worker, task int) {
	if task == 7 {
		panic("seven")
	}
}

func TestPanicReachesTheCallerAndThePoolSurvives(t *testing.T) {
	p := New(3)
	defer p.Close()
	func() {
		defer func() {
			text := fmt.Sprint(recover())
			for _, want := range []string{"seven", "worker", "failing.Do"} {
				if !strings.Contains(text, want) {
					t.Errorf("the caller's panic does not say %q: %.300s", want, text)
				}
			}
		}()
		p.Run(100, failing{})
	}()
	c := &count{hits: make([]atomic.Int32, 10)}
	p.Run(10, c)
	for i := range c.hits {
		if c.hits[i].Load() != 1 {
			t.Fatalf("task %d did not run after the panic", i)
		}
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	p := New(2)
	defer p.Close()
	c := &count{hits: make([]atomic.Int32, 64)}
	if n := filetest.AllocsPerRun(50, func() { p.Run(64, c) }); n != 0 {
		t.Errorf("%v allocations per run, want 0", n)
	}
}
