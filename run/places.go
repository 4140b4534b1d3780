package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"anneal/comm"
	"anneal/config"
	"anneal/internal/fileio"
	"anneal/parallel"
	"anneal/tensor"
)

// The file ranks/NNNN in the run directory identifies a rank and, once the rank has waited for more than a second,
// says what it waits for. A rank whose deadline passes reads the files of the others: a rank that waits for nothing,
// or for an earlier operation, is behind.

// Whereabouts is the content of ranks/NNNN.
type Whereabouts struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Place string    `json:"place,omitempty"` // in a mesh of ranks
	Step  int       `json:"step"`            // the current step
	Waits string    `json:"waits,omitempty"` // what it waits for, and since when; "" if it does not wait
	Since time.Time `json:"since,omitzero"`
}

const (
	noteAfter = time.Second // a rank that waits this long notes it in its file
	maxPlace  = 4 << 10     // bytes
)

func (d runDir) place(rank int) string { return filepath.Join(d.ranks(), fmt.Sprintf("%04d", rank)) }

// lookout records what a rank waits for. A nil lookout records nothing.
type lookout struct {
	after time.Duration // how long the rank waits before the file says so
	path  string
	done  chan struct{}

	mu  sync.Mutex
	now Whereabouts
}

// newLookout returns a lookout for a rank with a deadline. It writes nothing until it is opened.
func newLookout(deadline time.Duration) *lookout {
	return &lookout{
		after: min(noteAfter, deadline/4), done: make(chan struct{}),
		now: Whereabouts{Host: hostname(), PID: os.Getpid()},
	}
}

// open begins to write the records to a file. The caller closes the lookout.
func (l *lookout) open(path string) {
	l.mu.Lock()
	l.path = path
	at := l.now
	l.mu.Unlock()
	l.write(at)
	go l.run()
}

func (l *lookout) close() {
	if l != nil {
		close(l.done)
	}
}

// begin records the current step.
func (l *lookout) begin(step int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Step = step
}

// step returns the current step.
func (l *lookout) step() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now.Step
}

// operation returns what the rank waits for, or that it computes.
func (l *lookout) operation() string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.now.Waits, "the computation")
}

// wait records what the rank waits for; "" ends the wait.
func (l *lookout) wait(what string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now.Waits, l.now.Since = what, time.Now(); what == "" {
		l.now.Since = time.Time{}
	}
}

// run writes the file when the rank has waited for long, and again when the wait ends.
func (l *lookout) run() {
	ticker := time.NewTicker(max(l.after/4, time.Millisecond))
	defer ticker.Stop()
	written := Whereabouts{} // what the file says that it waits for
	for {
		select {
		case <-l.done:
			return
		case now := <-ticker.C:
			l.mu.Lock()
			at := l.now
			l.mu.Unlock()
			if at.Waits == "" || now.Sub(at.Since) <= l.after {
				at.Waits, at.Since = "", time.Time{}
			}
			if at.Waits != written.Waits || at.Since != written.Since {
				l.write(at)
				written = at
			}
		}
	}
}

// write writes the file. Errors are ignored, because the file is needed only when a rank is lost.
func (l *lookout) write(at Whereabouts) {
	text, err := json.Marshal(at)
	if err == nil {
		os.WriteFile(l.path, append(text, '\n'), 0o666)
	}
}

// behind returns what the rank of this lookout waits for, and which of n ranks it waits for: those that wait for
// nothing or are at an earlier step; if there are none, the rank that the transport names; else all ranks that wait
// for something else. Before the lookout is opened it returns nothing.
func (l *lookout) behind(d runDir, n, named int) (waits string, list []string) {
	if !l.opened() {
		return "", nil
	}
	l.mu.Lock()
	mine := l.now
	l.mu.Unlock()
	var elsewhere []string
	for rank := range n {
		path := d.place(rank)
		if path == l.path {
			continue
		}
		at, err := readPlace(path)
		switch {
		case err != nil || at.Waits == "" || at.Step < mine.Step:
			list = append(list, at.describe(rank))
		case at.Waits != mine.Waits && (named < 0 || named == rank):
			elsewhere = append(elsewhere, at.describe(rank))
		}
	}
	if list == nil {
		list = elsewhere
	}
	return mine.Waits, list
}

// opened reports whether this rank writes its file.
func (l *lookout) opened() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.path != ""
}

// readPlace reads the file of a rank.
func readPlace(path string) (at Whereabouts, err error) {
	text, err := fileio.ReadSmall(path, maxPlace)
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	return at, err
}

// describe identifies a rank: its host, its process and its place.
func (p *Whereabouts) describe(rank int) string {
	switch {
	case p.PID == 0:
		return fmt.Sprintf("rank %d", rank)
	case p.Waits == "":
		return fmt.Sprintf("rank %d (%s, process %d%s)", rank, p.Host, p.PID, p.placed())
	}
	return fmt.Sprintf("rank %d (%s, process %d%s; it last waited for %s of step %d)",
		rank, p.Host, p.PID, p.placed(), p.Waits, p.Step)
}

// placed returns the place, if there is one, as an item of a list.
func (p *Whereabouts) placed() string {
	if p.Place == "" {
		return ""
	}
	return ", " + p.Place
}

// placeIn describes the place of a rank of n in a mesh; "" if it has all layers and all tokens of its micro-batches.
func placeIn(p config.Parallel, rank, n int) string {
	if p.Shared() == 1 {
		return ""
	}
	at := parallel.Sizes{Tensor: p.Tensor, Context: p.Context, Pipeline: p.Pipeline}.At(rank, n)
	return fmt.Sprintf("stage %d, data %d, context %d, tensor %d", at.Stage, at.Data, at.Chunk, at.Cut)
}

// watchedComm is a group that records waits, and in which a fault may strike.
type watchedComm struct {
	comm.Comm
	look  *lookout
	fault *fault
}

func (c watchedComm) Share(mine []byte) ([][]byte, error) {
	c.look.wait("the agreement of all ranks")
	all, err := c.Comm.Share(mine)
	if err == nil { // after an error the rank still waits for the operation
		c.look.wait("")
	}
	return all, err
}

func (c watchedComm) Group(ranks []int) (comm.Comm, error) {
	g, err := c.Comm.Group(ranks)
	if err != nil {
		return nil, err
	}
	return watchedComm{g, c.look, c.fault}, nil
}

func (c watchedComm) NewExchange(name string, out, room [][]tensor.Tensor) comm.Transfer {
	c.look.wait("the preparation of " + name)
	t := watchedTransfer{c.Comm.NewExchange(name, out, room), name, c.look}
	c.look.wait("")
	if strings.HasPrefix(name, "the gradients") {
		return &spoiledTransfer{t, out, c}
	}
	return &t
}

type watchedTransfer struct {
	comm.Transfer
	name string
	look *lookout
}

// spoiledTransfer is a transfer of gradients.
type spoiledTransfer struct {
	watchedTransfer
	out [][]tensor.Tensor
	in  watchedComm
}

func (t *spoiledTransfer) Set(out, room [][]tensor.Tensor) {
	t.out = out
	t.Transfer.Set(out, room)
}

func (t *spoiledTransfer) Start(senders int) {
	if t.in.Rank() < senders {
		t.in.fault.spoil(t.out)
	}
	t.Transfer.Start(senders)
}

func (t *watchedTransfer) Wait() error { return t.watch(t.Transfer.Wait) }
func (t *watchedTransfer) Sent() error { return t.watch(t.Transfer.Sent) }

func (t *watchedTransfer) watch(wait func() error) error {
	t.look.wait(t.name)
	err := wait()
	if err == nil {
		t.look.wait("")
	}
	return err
}
