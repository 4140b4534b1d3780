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
	Synchronous bool         // write from live memory within Save: no copy of the state, but training waits
	Together    bool         // this process holds only a part of the tensors; other processes hold the rest
	Origin      Origin       // recorded in every checkpoint, and returned in Info
	Log         *slog.Logger // warnings, and notices for debugging; nil means slog.Default
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
	pending  *job            // begun by Begin, neither committed nor abandoned
	background
}

// Open locks the directory root (created if needed), removes the remains of killed saves, and returns a Store. For a
// directory in use it returns a *LockedError.
func Open(root string, opt Options) (*Store, error) { return open(root, opt, disk{}) }

func open(root string, opt Options, fs filesystem) (*Store, error) {
	if opt.Keep == 0 {
		opt.Keep = 3
	}
	if opt.Keep < 2 {
		return nil, fmt.Errorf("checkpoint: keep = %d; it must be at least 2, in case the newest one is damaged",
			opt.Keep)
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

// SetOrigin replaces the origin that the store records in later checkpoints.
func (s *Store) SetOrigin(o Origin) { s.opt.Origin = o }

// Reserve prepares, in the background, the memory for snapshots of n bytes. Without it the first snapshot takes
// longer, because the system must find and clear that much memory. Call it before the first save.
func (s *Store) Reserve(n int64) {
	if !s.opt.Synchronous {
		s.snapshot.reserve(int(n))
	}
}

// Save begins to save tensors and state (encoded as JSON) and returns; a goroutine takes a snapshot of the tensors and
// writes it. Live memory may be read meanwhile, and may change as soon as Copied has returned, so that a step of
// training need not wait before its update. At most one write is in progress: Save waits for the previous one, and
// returns its error if it failed. The new save has then still been started, unless the error says otherwise. A failed
// save does not change earlier checkpoints.
func (s *Store) Save(step, tokens int64, tensors []Tensor, state any) error {
	return errors.Join(s.Wait(), s.start(step, tokens, tensors, state))
}

func (s *Store) start(step, tokens int64, tensors []Tensor, state any) error {
	j, err := s.newJob(step, tokens, state)
	if err != nil {
		return err
	}
	if err := checkSome(tensors); err != nil {
		return err
	}
	p, err := plan(tensors, "")
	if err != nil {
		return err
	}
	if err := s.space(p.bytes() + int64(len(j.state))); err != nil {
		return j.failed(err)
	}
	s.sequence++
	write := func() error {
		return s.write(j, func() (*manifest, error) {
			if err := s.fs.Mkdir(j.tmp); err != nil {
				return nil, err
			}
			return p.write(s.fs, j.tmp)
		})
	}
	copying, err := s.copyOf(p, s.opt.Synchronous)
	if err != nil {
		return j.failed(err)
	}
	return s.begin(s.opt.Synchronous, copying, write)
}

// newJob makes the job of the next save.
func (s *Store) newJob(step, tokens int64, state any) (*job, error) {
	switch {
	case s.lock == nil:
		return nil, errors.New("checkpoint: Save after Close")
	case step < 0 || tokens < 0:
		return nil, fmt.Errorf("checkpoint: negative step %d or tokens %d", step, tokens)
	case s.pending != nil:
		return nil, fmt.Errorf("checkpoint: step %d is neither committed nor abandoned", s.pending.step)
	}
	stateText, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: cannot encode the state: %w", err)
	}
	j := &job{step: step, tokens: tokens, sequence: s.sequence, parent: s.parent, origin: s.opt.Origin,
		state: stateText, began: time.Now()}
	j.tmp = s.path(tempName(fmt.Sprintf("step-%08d", step)))
	if err := s.keepLock(); err != nil {
		return nil, j.failed(err)
	}
	return j, nil
}

// CheckBytes returns an error if one checkpoint with so many bytes of tensors, which several processes may hold, would
// not fit, so that a run need not find out at its first save.
func (s *Store) CheckBytes(n int64) error {
	if err := s.space(n); err != nil {
		return fmt.Errorf("checkpoint: not enough disk space for one checkpoint: %w", err)
	}
	return nil
}

func (s *Store) space(bytes int64) error {
	err := space(s.free, s.root, bytes)
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w\n  free some space, or lower checkpoint.keep (now %d)", err, s.opt.Keep)
	}
	return err
}

// space returns an error if a directory has less free space than the given bytes, plus some for headers, the manifest
// and directories.
func space(available func(path string) (int64, error), dir string, bytes int64) error {
	const slack = 1 << 20
	need := bytes + slack
	free, err := available(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // the write itself will report it
	}
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("it needs %.1f MB, but %s has %.1f MB free: %w",
			float64(need)/1e6, dir, float64(free)/1e6, syscall.ENOSPC)
	}
	return nil
}

// Close waits for the write in progress, releases the lock, and returns the error of either.
func (s *Store) Close() error {
	if s.lock == nil {
		return nil
	}
	err := errors.Join(s.Wait(), s.Abandon(), letGo(s.lock), s.snapshot.close())
	s.lock = nil
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
