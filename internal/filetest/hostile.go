package filetest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// Limits for reading a small hostile file.
const (
	mostTime  = 100 * time.Millisecond
	mostBytes = 64 << 20
)

// Refused fails the test unless f returns an error within 100 ms and 64 MiB of allocations. It returns the error.
func Refused(t testing.TB, what string, f func() error) error {
	t.Helper()
	err := Bounded(t, what, f)
	if err == nil {
		t.Errorf("%s: no error", what)
	}
	return err
}

// Bounded fails the test unless f returns within 100 ms and 64 MiB of allocations. It returns the result of f.
func Bounded(t testing.TB, what string, f func() error) error {
	t.Helper()
	var r ran
	for range 10 { // on a busy machine some tries are slow
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		select {
		case r = <-run(f):
		case <-time.After(time.Minute):
			t.Fatalf("%s: no end after a minute", what)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > mostBytes {
			t.Errorf("%s: %d MiB allocated, the limit is %d: %.200v", what, n>>20, mostBytes>>20, r.err)
			return r.err
		}
		if r.took <= mostTime {
			return r.err
		}
	}
	t.Errorf("%s: %v, the limit is %v: %.200v", what, r.took, mostTime, r.err)
	return r.err
}

type ran struct {
	err  error
	took time.Duration
}

// run runs f in a separate thread.
func run(f func() error) <-chan ran {
	done := make(chan ran, 1)
	go func() {
		runtime.LockOSThread()
		start := threadTime()
		err := f()
		done <- ran{err, threadTime() - start}
	}()
	return done
}

// NotFiles creates things that are not small files, all of which a reader must reject, and returns their paths by
// kind: a directory, a file of 64 GiB and, where the system has them, a pipe and an endless device. Each path ends in
// name.
func NotFiles(t testing.TB, name string) map[string]string {
	t.Helper()
	paths := map[string]string{}
	place := func(what string) string {
		dir := filepath.Join(t.TempDir(), "not")
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		paths[what] = filepath.Join(dir, name)
		return paths[what]
	}
	if err := os.Mkdir(place("a directory"), 0o777); err != nil {
		t.Fatal(err)
	}
	huge := place("64 GiB")
	if err := os.WriteFile(huge, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 64<<30); err != nil {
		delete(paths, "64 GiB") // the file system does not support sparse files
	}
	if pipe := place("a pipe"); makePipe(pipe) != nil {
		delete(paths, "a pipe")
	}
	if _, err := os.Stat("/dev/zero"); err != nil || os.Symlink("/dev/zero", place("a device")) != nil {
		delete(paths, "a device")
	}
	return paths
}
