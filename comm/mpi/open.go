//go:build mpi && linux

package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"
)

const built = true

var opened atomic.Bool

// quiet are variables that keep libraries below MPI from installing signal handlers.
var quiet = map[string]string{"UCX_ERROR_SIGNALS": "", "IPATH_NO_BACKTRACE": "1", "HFI_NO_BACKTRACE": "1"}

// Open loads the MPI library of the launcher that started this process, or the one that ANNEAL_MPI names, and joins
// the other processes. A process can do that once. A process that no launcher started is a group of one rank.
func Open(o Options) (Group, error) {
	if !opened.CompareAndSwap(false, true) {
		return nil, errors.New("MPI can be opened once in a process")
	}
	before := readActions()
	for name, value := range quiet {
		os.Setenv(name, value)
	}
	from := launchedBy(os.Environ())
	lib, a, err := from.load()
	if err != nil {
		return nil, err
	}
	l, err := newLibrary(lib, a)
	if err != nil {
		return nil, err
	}
	says, err := l.version()
	if err != nil {
		return nil, err
	}
	w := &world{timeout: cmp.Or(o.Timeout, 10*time.Minute), down: make(chan struct{}), told: make(chan struct{})}
	w.info = Info{Launcher: from.name, Library: says, Path: lib.Path(), ABI: a.name}
	t := &thread{
		library: l, world: w, batches: make(chan *batch, 16), quit: make(chan chan error),
		reason: make([]byte, maxReason),
	}
	w.thread = t
	ready := make(chan error)
	go t.live(ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	w.info.Signals = before.restore()
	if err := from.check(w.info.Size, lib.Path()); err != nil {
		return nil, err
	}
	numbers := make([]int, w.info.Size)
	for r := range numbers {
		numbers[r] = r
	}
	w.shared = make([]int, w.info.Size)
	g, err := w.newGroup(w.info.Rank, numbers)
	if err != nil {
		return nil, err
	}
	if err := g.meet(); err != nil {
		return nil, err
	}
	g.info.Signals = append(g.info.Signals, before.restore()...) // some wait for the first message
	return g, nil
}

// live is the goroutine that runs the thread of the library.
func (t *thread) live(ready chan error) {
	runtime.LockOSThread()
	punctual()
	info := &t.world.info
	var err error
	info.Threads, info.Rank, info.Size, err = t.begin()
	if err == nil {
		t.ending = newBatch([]message{
			{peer: t.anySource, tag: tagEnd, data: unsafe.Pointer(&t.reason[0]), size: len(t.reason)},
		})
		err = t.post(&t.ending.messages[0], t.ending.requests)
	}
	ready <- err
	if err == nil {
		t.run()
	}
}

// check compares the size of the group with the launcher's. A library of another MPI does not understand this
// launcher; then every process would train by itself.
func (l launcher) check(size int, path string) error {
	want, err := strconv.Atoi(os.Getenv(l.size))
	if err != nil || want == size {
		return nil
	}
	return fmt.Errorf("the launcher (%s) started %d ranks, but the MPI library %s sees %d: it belongs to another MPI\n"+
		"  set ANNEAL_MPI to the path of the launcher's own library, or use the mpirun that belongs to this one",
		l.name, want, path, size)
}
