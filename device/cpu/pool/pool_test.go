package pool

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
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

// exclusive fails if a worker number is out of range or used by two tasks at once: scratch memory goes by it.
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
	if n := testing.AllocsPerRun(50, func() { p.Run(64, c) }); n != 0 {
		t.Errorf("%v allocations per run, want 0", n)
	}
}
