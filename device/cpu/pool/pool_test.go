package pool

import (
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
			if recover() == nil {
				t.Error("no panic reached the caller")
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
