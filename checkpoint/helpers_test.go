package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// The tensor files of a checkpoint by one writer.
const (
	modelFile = "model.safetensors"
	optimFile = "optim.safetensors"
)

// runState stands for the trainer's own state.
type runState struct {
	Step   int64
	Cursor string
}

// stateAt is the state of a run at a step: a pure function, so that what was loaded can be checked against it. The
// first tensor spans several chunks, the small ones share one.
func stateAt(step int64, bigBytes int) ([]Tensor, runState) {
	tensors := []Tensor{
		{Name: "embed", DType: "F32", Shape: []int{bigBytes / 4}},
		{Name: "layer.norm", DType: "F32", Shape: []int{16}},
		{Name: "layer.w", DType: "BF16", Shape: []int{8, 32}},
		{Name: "none", DType: "F32", Shape: []int{0, 4}},
		{Name: "embed.m", DType: "F32", Shape: []int{bigBytes / 4}, Optim: true},
		{Name: "count", DType: "I64", Shape: nil, Optim: true},
	}
	sizes := []int{bigBytes, 64, 512, 0, bigBytes, 8}
	for i := range tensors {
		tensors[i].Data = make([]byte, sizes[i])
		fillAt(tensors[i].Data, step, i)
	}
	return tensors, runState{step, fmt.Sprint("doc ", step*31)}
}

func fillAt(p []byte, step int64, tensor int) {
	x := uint64(step)*0x9E3779B97F4A7C15 + uint64(tensor)
	for i := 0; i+8 <= len(p); i += 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(p[i:], x+1)
	}
}

// blank is the same tensors with nothing in them.
func blank(bigBytes int) []Tensor {
	tensors, _ := stateAt(0, bigBytes)
	for i := range tensors {
		clear(tensors[i].Data)
	}
	return tensors
}

// differs says how loaded tensors and state differ from those of a step, "" if they do not.
func differs(tensors []Tensor, state runState, step int64, bigBytes int) string {
	want, wantState := stateAt(step, bigBytes)
	for i := range want {
		if !bytes.Equal(want[i].Data, tensors[i].Data) {
			return fmt.Sprintf("tensor %q is not that of step %d", want[i].Name, step)
		}
	}
	if state != wantState {
		return fmt.Sprintf("state is %+v, want %+v", state, wantState)
	}
	return ""
}

const small = 4096

func mustOpen(t *testing.T, root string, opt Options) *Store {
	t.Helper()
	s, err := Open(root, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// mustSave saves steps and waits for each.
func mustSave(t *testing.T, s *Store, bigBytes int, steps ...int64) {
	t.Helper()
	for _, step := range steps {
		tensors, state := stateAt(step, bigBytes)
		if err := s.Save(step, step*10, tensors, state); err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// share returns what one of several writers saves of the tensors: a run of the elements of vectors, columns of
// matrices, and of what is smaller, every so manieth whole.
func share(tensors []Tensor, number, writers int) []Tensor {
	var list []Tensor
	for i, t := range tensors {
		between := func(n int) (from, to int) { return n * number / writers, n * (number + 1) / writers }
		switch {
		case len(t.Shape) == 2 && t.Shape[0] > 0:
			from, to := between(t.Shape[1])
			list = append(list, partOf(t, Region{Box: Box{[]int{0, from}, []int{t.Shape[0], to - from}}}))
		case len(t.Shape) == 1 && t.Shape[0] >= writers:
			from, to := between(t.Shape[0])
			list = append(list, partOf(t, Region{From: int64(from), To: int64(to)}))
		case i%writers == number:
			list = append(list, t)
		}
	}
	return list
}

// save saves by one writer, with Save, or by several.
func save(s *Store, writers int, step int64, tensors []Tensor, state any) error {
	if writers == 1 {
		return errors.Join(s.Save(step, step*10, tensors, state), s.Wait())
	}
	parts := make([][]Tensor, writers)
	for i := range parts {
		parts[i] = share(tensors, i, writers)
	}
	return saveParts(s, step, parts, state)
}

// wantLatest loads the newest checkpoint and demands that it is of step, whole.
func wantLatest(t *testing.T, root string, step int64, bigBytes int) Info {
	t.Helper()
	tensors, state := blank(bigBytes), runState{}
	info, err := LoadLatest(root, tensors, &state)
	if err != nil {
		t.Fatal(err)
	}
	if info.Step != step || info.Tokens != step*10 {
		t.Fatalf("loaded step %d with %d tokens, want step %d with %d; skipped: %v",
			info.Step, info.Tokens, step, step*10, info.Skipped)
	}
	if d := differs(tensors, state, step, bigBytes); d != "" {
		t.Fatal(d)
	}
	return info
}

// names lists a directory but for the lock file.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if e.Name() != ".lock" {
			list = append(list, e.Name())
		}
	}
	return list
}

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o644); err != nil {
		t.Fatal(err)
	}
}

// journal is a log that tests read.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

var quiet = slog.New(slog.DiscardHandler)

func step(n int) string { return fmt.Sprintf("step-%08d", n) }

func at(root string, n int, file string) string { return filepath.Join(root, step(n), file) }
