package curate

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// wait waits until other tasks have finished the needed work, or all work.
func (r *runner) wait(ctx context.Context, until func() bool, missing func() string) error {
	start, pause := time.Now(), 50*time.Millisecond
	for ; !until() && !r.state.complete(); r.update() {
		what := missing()
		if r.o.TaskCount <= 1 {
			return fmt.Errorf("the output of %s in %s disappeared during the run\n  give the same command again",
				what, r.o.Dir)
		}
		if r.o.Wait > 0 && time.Since(start) > r.o.Wait {
			return fmt.Errorf("%w for %s, but these are not done: %s\n"+
				"  start all tasks at once, or give the command again when they are done", ErrWaited, r.o.Wait, what)
		}
		if r.o.Waiting != nil {
			r.o.Waiting(what)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(2*pause, 2*time.Second)
	}
	return nil
}

// missing describes which splits of a pass are not done, and which tasks they belong to.
func (r *runner) missing(k int) string {
	n := 0
	var tasks []string
	seen := map[int]bool{}
	for i, e := range r.state.maps[k] {
		if e == nil {
			n++
			if t := i % max(r.o.TaskCount, 1); !seen[t] && len(seen) < 9 {
				seen[t] = true
				tasks = append(tasks, fmt.Sprint(t))
			} else if !seen[t] {
				seen[t] = true
				tasks = append(tasks, "…")
				break
			}
		}
	}
	return fmt.Sprintf("%d of %d splits of pass %d, of tasks %s", n, len(r.splits), k+1, strings.Join(tasks, ", "))
}
