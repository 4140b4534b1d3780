package flash

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"
)

// A wave is the backward pass of few key-value heads on many workers. A task is one step, and all steps of a head add
// to the same dK and dV, in the order of a single worker: a step accesses keys only after all earlier steps have
// passed them. Tasks start in order and process their keys from the first on, so each follows the one before it at a
// distance of little more than a tile. Results equal those of one worker, bit for bit.
type wave struct {
	steps  int            // per key-value head; 0 without a wave, when a task is all steps of a head
	passed []atomic.Int64 // by task: the smallest key that it may still access
	first  atomic.Int64   // all earlier tasks are done
}

// launch decides whether to use a wave for the given number of key-value heads in rows, and prepares it. It returns
// the number of tasks.
func (v *wave) launch(heads, workers int, teams []team) (tasks int) {
	steps, sum := 0, 0
	for i := range teams {
		if i > 0 && teams[i].kv != teams[i-1].kv {
			sum = 0
		}
		sum += teams[i].steps
		steps = max(steps, sum)
	}
	v.steps = 0
	if workers == 1 || heads >= 4*workers || heads%workers == 0 || steps == 1 {
		return heads
	}
	v.steps, tasks = steps, steps*heads
	v.first.Store(0)
	if len(v.passed) < tasks {
		v.passed = make([]atomic.Int64, tasks)
	}
	for i := range tasks {
		v.passed[i].Store(0)
	}
	return tasks
}

// wait returns when all earlier tasks have passed a key.
func (v *wave) wait(task, key int) {
	at := int(v.first.Load())
	for at < task && v.passed[at].Load() == math.MaxInt64 {
		at++
	}
	v.first.Store(int64(at))
	for ; at < task; at++ {
		for tries := 0; v.passed[at].Load() <= int64(key); tries++ {
			if tries < 100 {
				runtime.Gosched()
			} else {
				time.Sleep(20 * time.Microsecond) // earlier tasks may need this CPU
			}
		}
	}
}

// least returns the smallest key that a step may still access, in the remaining tiles of its cutter or in later
// blocks.
func (w *work) least() int {
	c := &w.cutter
	least := w.later
	for i := range len(c.ranges) + 1 {
		k := c.tail
		if i < len(c.ranges) {
			k = c.ranges[i]
		}
		if i == 0 {
			k.First += c.used * k.Step
			k.Count -= c.used
		}
		if k.Count > 0 {
			least = min(least, k.First)
		}
	}
	return least
}

// waveStep computes one step of a key-value head in a wave.
func (j *backwardJob[T]) waveStep(worker, task int) {
	r, v := j.r, &j.r.wave
	defer v.passed[task].Store(math.MaxInt64) // even after a panic, so that no task waits forever
	head, step := task/v.steps, task%v.steps
	row, kv := head/j.KV, head%j.KV
	t := r.backwardScratch(&carver[T]{buf: r.scratch[worker]}, &j.shape)
	shared := r.backwardScratch(&carver[T]{buf: r.scratch[head%len(r.scratch)]}, &j.shape)
	t.dk, t.dv = shared.dk, shared.dv
	if step == 0 {
		v.wait(task-(len(r.scratch)-1)*v.steps, math.MaxInt64-1) // wait for the task that used the memory before
		clear(t.dk)
		clear(t.dv)
	}
	w := &r.work[worker]
	w.task = task
	at := step
	for i := range r.teams {
		m := &r.teams[i]
		if m.kv != kv {
			continue
		}
		if at >= 0 && at < m.steps {
			j.step(&t, w, m, row, at)
		}
		at -= m.steps
	}
	if step == v.steps-1 {
		v.wait(task, math.MaxInt64-1)
		j.store(&t, row, kv)
	}
}

// enter waits until the units of w may access their tile of keys; leave marks it as passed.
func (j *backwardJob[T]) enter(w *work) {
	if j.r.wave.steps == 0 {
		return
	}
	top := 0
	for i := range w.tile.runs {
		top = max(top, last(w.tile.runs[i].Strip))
	}
	j.r.wave.wait(w.task, top)
}

func (j *backwardJob[T]) leave(w *work, m *team) {
	if j.r.wave.steps > 0 && !m.overlaps() {
		j.r.wave.passed[w.task].Store(int64(w.least()))
	}
}
