package checkpoint

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"anneal/internal/machine"
)

// Options of a Store. The zero value is usable.
type Options struct {
	Keep        int          // checkpoints to keep; at least 2, 0 means 3
	Synchronous bool         // write from live memory within Save: no copy of the state, but training waits for the disk
	Origin      Origin       // recorded in every checkpoint, and returned in Info
	Log         *slog.Logger // notices and warnings; nil means slog.Default
}

// Store writes the checkpoints of one run. Its methods must be called from one goroutine.
type Store struct {
	root     string
	opt      Options
	fs       filesystem
	free     func(path string) (int64, error) // bytes available at path
	lock     *os.File
	sequence int64           // of the next save
	parent   string          // name of the last checkpoint saved or loaded; "" if none
	bad      map[string]bool // names of checkpoints that failed verification
	buffer   []byte          // the snapshot, reused
	inflight chan error      // nil if no write is in progress
}

// Open locks the directory root (created if needed), removes the remains of killed saves, and returns a Store. For a
// directory in use it returns a *LockedError.
func Open(root string, opt Options) (*Store, error) { return open(root, opt, disk{}) }

func open(root string, opt Options, fs filesystem) (*Store, error) {
	if opt.Keep == 0 {
		opt.Keep = 3
	}
	if opt.Keep < 2 {
		return nil, fmt.Errorf("checkpoint: keep = %d; it must be at least 2, in case the newest one is damaged", opt.Keep)
	}
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w", root, err)
	}
	l, err := lock(root, opt.Log)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	s := &Store{root: root, opt: opt, fs: fs, free: machine.FreeDisk, lock: l, bad: map[string]bool{}}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("checkpoint: %w", err), letGo(l))
	}
	return s, nil
}

// prepare sweeps leftovers and finds the next sequence number.
func (s *Store) prepare() error {
	if err := s.sweep(); err != nil {
		return err
	}
	entries, err := List(s.root)
	if err != nil {
		return err
	}
	if len(entries) > 0 && entries[0].Err == nil {
		s.sequence = entries[0].sequence + 1
	}
	return nil
}

// Origin returns what the store records in every checkpoint.
func (s *Store) Origin() Origin { return s.opt.Origin }

// Save takes a snapshot of tensors and state (encoded as JSON) and returns; a goroutine writes it. Live memory may
// change as soon as Save returns. At most one write is in progress: Save waits for the previous one, and returns its
// error if it failed. The new save has then still been started, unless the error says otherwise. A failed save does
// not change earlier checkpoints.
func (s *Store) Save(step, tokens int64, tensors []Tensor, state any) error {
	return errors.Join(s.Wait(), s.start(step, tokens, tensors, state))
}

func (s *Store) start(step, tokens int64, tensors []Tensor, state any) error {
	if s.lock == nil {
		return errors.New("checkpoint: Save after Close")
	}
	if err := s.keepLock(); err != nil {
		return fmt.Errorf("checkpoint: step %d not saved: %w", step, err)
	}
	if step < 0 || tokens < 0 {
		return fmt.Errorf("checkpoint: negative step %d or tokens %d", step, tokens)
	}
	if err := checkTensors(tensors); err != nil {
		return err
	}
	stateText, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("checkpoint: cannot encode the state: %w", err)
	}
	j := &job{step: step, tokens: tokens, sequence: s.sequence, parent: s.parent, state: stateText, began: time.Now()}
	if err := j.plan(tensors); err != nil {
		return err
	}
	if err := s.checkSpace(j); err != nil {
		return err
	}
	s.sequence++
	if s.opt.Synchronous {
		return s.write(j)
	}
	if err := s.snapshot(j); err != nil {
		return fmt.Errorf("checkpoint: step %d not saved: %w", step, err)
	}
	done := make(chan error, 1)
	s.inflight = done
	go func() { done <- s.write(j) }()
	return nil
}

// snapshot copies the job from live memory into the store's buffer.
func (s *Store) snapshot(j *job) error {
	if need := int(j.tensorBytes()); cap(s.buffer) < need {
		s.buffer = make([]byte, need)
	}
	rest := s.buffer[:cap(s.buffer)]
	for i := range j.tensors {
		t := &j.tensors[i]
		n := t.Bytes()
		if t.Remote == nil {
			copy(rest, t.Data)
		} else if err := t.Remote.Read(rest[:n]); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		t.Data, t.Remote, rest = rest[:n:n], nil, rest[n:]
	}
	return nil
}

// checkSpace rejects a save that cannot fit, before anything is copied or written.
func (s *Store) checkSpace(j *job) error {
	if err := s.room(j.tensorBytes() + int64(len(j.state))); err != nil {
		return fmt.Errorf("checkpoint: step %d not saved: %w", j.step, err)
	}
	return nil
}

// CheckSpace returns an error if one checkpoint of these tensors would not fit, so that a run need not find out at
// its first save.
func (s *Store) CheckSpace(tensors []Tensor) error {
	n := int64(0)
	for _, t := range tensors {
		n += t.Bytes()
	}
	if err := s.room(n); err != nil {
		return fmt.Errorf("checkpoint: not enough disk space for one checkpoint: %w", err)
	}
	return nil
}

// room returns an error if the directory does not have bytes free, plus some for headers, the manifest and
// directories.
func (s *Store) room(bytes int64) error {
	const slack = 1 << 20
	need := bytes + slack
	free, err := s.free(s.root)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // the write itself will report it
	}
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("it needs %.1f MB, but %s has %.1f MB free: %w\n  free some space, or lower checkpoint.keep (now %d)",
			float64(need)/1e6, s.root, float64(free)/1e6, syscall.ENOSPC, s.opt.Keep)
	}
	return nil
}

// Wait waits for the write in progress, if any, and returns its error.
func (s *Store) Wait() error {
	if s.inflight == nil {
		return nil
	}
	err := <-s.inflight
	s.inflight = nil
	return err
}

// Done reports whether no write is in progress: Wait then returns at once.
func (s *Store) Done() bool { return s.inflight == nil || len(s.inflight) > 0 }

// Close waits for the write in progress, releases the lock, and returns the error of either.
func (s *Store) Close() error {
	if s.lock == nil {
		return nil
	}
	err := errors.Join(s.Wait(), letGo(s.lock))
	s.lock, s.buffer = nil, nil
	return err
}

// tempName returns a name for a directory that is not yet, or no longer, valid.
func tempName(name string) string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return name + ".tmp-" + hex.EncodeToString(b[:])
}

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.root}, elem...)...)
}
