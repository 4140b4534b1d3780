package run

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"anneal/checkpoint"
	"anneal/dataset"
	"anneal/internal/fileio"
)

// A run that the guard stopped keeps diverged.json until training continues, so that its weights are not used by
// mistake.

// divergedMark is the content of diverged.json.
type divergedMark struct {
	Step  int    `json:"step"`  // where training stopped
	Error string `json:"error"` // what it said
}

const maxDivergedMark = 64 << 10

func (d runDir) diverged() string { return filepath.Join(string(d), "diverged.json") }

// markDiverged records that the guard stopped the run.
func (d runDir) markDiverged(away *DivergedError) error {
	text, err := json.Marshal(divergedMark{away.Step, away.Error()})
	if err != nil {
		return err
	}
	return writeDurably(d.diverged(), append(text, '\n'))
}

// unmarkDiverged removes diverged.json when training continues.
func (d runDir) unmarkDiverged() error {
	if err := os.Remove(d.diverged()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot continue the run: %w", err)
	}
	return nil
}

// DivergedRunError means that the weights of a run are those of a training that diverged.
type DivergedRunError struct{ Message, Try string }

func (e *DivergedRunError) Error() string { return e.Message + "\n  " + e.Try }

// checkDiverged returns a *DivergedRunError if the guard stopped the run. saved is the step of its newest checkpoint.
func (d runDir) checkDiverged(saved int64) error {
	text, err := fileio.ReadSmall(d.diverged(), maxDivergedMark)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var mark divergedMark
	if err == nil {
		err = json.Unmarshal(text, &mark)
	}
	if err != nil {
		return &dataset.Error{Err: fmt.Errorf("%s, which says that the run diverged, cannot be read: %w\n"+
			"  remove it to use the run anyway", d.diverged(), err)}
	}
	try := fmt.Sprintf("take it back and leave batches out with `anneal rewind %s --to N --skip FROM:TO`, "+
		"or use this checkpoint with --allow-older", d.word())
	if saved > 0 { // 0 stands for the newest
		try += fmt.Sprintf(", or train from its weights with --init-step %d", saved)
	}
	return &DivergedRunError{fmt.Sprintf("%s diverged: training stopped at step %d, and its newest checkpoint is of "+
		"step %d", d, mark.Step, saved), try}
}

// checkFinite returns a *DivergedRunError if a weight of the run is NaN or infinite.
func (d runDir) checkFinite(step int64, weights []checkpoint.Tensor) error {
	var buffer []byte
	for _, w := range weights {
		data := w.Data
		if w.Remote != nil {
			if n := int(w.Bytes()); cap(buffer) < n {
				buffer = make([]byte, n)
			}
			data = buffer[:w.Bytes()]
			if err := w.Remote.Read(data); err != nil {
				return err
			}
		}
		if n := nonFinite(data, w.DType); n > 0 {
			return &DivergedRunError{
				fmt.Sprintf("%s diverged: at step %d, %d of the %d weights of %s are NaN or infinite",
					d, step, n, elements(w.Shape), w.Name),
				fmt.Sprintf("take it back to an earlier step with `anneal rewind %[1]s --to N`;"+
					" `anneal ckpt ls %[1]s` lists the checkpoints", d.word()),
			}
		}
	}
	return nil
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// nonFinite counts the elements of a tensor that are NaN or infinite: all bits of their exponent are set. Tensors of
// other than floating-point types have none.
func nonFinite(data []byte, dtype string) (n int) {
	const bf16, fp16, fp32, fp64 = 0x7f80, 0x7c00, 0x7f800000, 0x7ff0000000000000
	exponent := map[string]uint64{"BF16": bf16, "F16": fp16, "F32": fp32, "F64": fp64}[dtype]
	switch exponent {
	case bf16, fp16:
		for ; len(data) >= 2; data = data[2:] {
			if x := binary.NativeEndian.Uint16(data); x&uint16(exponent) == uint16(exponent) {
				n++
			}
		}
	case fp32:
		for ; len(data) >= 4; data = data[4:] {
			if x := binary.NativeEndian.Uint32(data); x&fp32 == fp32 {
				n++
			}
		}
	case fp64:
		for ; len(data) >= 8; data = data[8:] {
			if x := binary.NativeEndian.Uint64(data); x&fp64 == fp64 {
				n++
			}
		}
	}
	return n
}
