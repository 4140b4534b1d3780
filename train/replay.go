package train

import (
	"fmt"

	"anneal/internal/shellword"
	"anneal/tensor"

	"github.com/zeebo/xxh3"
)

// A processor or memory with occasional errors damages a run without a trace: silent data corruption caused six of the
// 419 unexpected stops of Llama 3's training (Grattafiori et al. 2024, arXiv 2407.21783, §3.3.4). Since a micro-batch
// gives the same bits every time, running one twice detects such errors.
//
// It costs the time of one micro-batch every guard.replay_every steps, and 8 bytes a parameter tensor. Default: off.
// It cannot detect errors that are the same both times, in other steps, or in the optimizer.

// replayedLoss is the name under which a fingerprint holds the losses.
const replayedLoss = "the losses"

// fingerprint holds hashes of the results of a micro-batch, in a fixed order.
type fingerprint struct {
	names  []string
	hashes []uint64
	buffer []byte // for tensors in a device's own memory
}

// take adds the hashes of the gradients of unit u; for the last unit, where backward begins, it first clears f and
// adds the losses. It does nothing if f is nil.
func (f *fingerprint) take(t *Trainer, u int) error {
	if f == nil {
		return nil
	}
	if u == len(t.ends)-1 {
		f.names, f.hashes = f.names[:0], f.hashes[:0]
		if err := f.add(t, replayedLoss, &t.batch.Losses); err != nil {
			return err
		}
	}
	for _, p := range t.paramsOf(u) {
		if !p.HasGrad() {
			continue
		}
		if err := f.add(t, p.Name, &p.Grad); err != nil {
			return err
		}
	}
	return nil
}

func (f *fingerprint) add(t *Trainer, name string, x *tensor.Tensor) error {
	var bytes []byte
	if x.Apart() {
		if n := x.Bytes(); cap(f.buffer) < n {
			f.buffer = make([]byte, n)
		}
		bytes = f.buffer[:x.Bytes()]
		t.dev.Read(bytes, x)
		if err := Wait(t.dev); err != nil {
			return err
		}
	} else {
		bytes = x.Raw()
	}
	f.names, f.hashes = append(f.names, name), append(f.hashes, xxh3.Hash(bytes))
	return nil
}

// replays reports whether the current pass of a step runs its first micro-batch twice.
func (t *Trainer) replays() bool {
	every := t.cfg.Guard.ReplayEvery
	return every > 0 && (t.progress.Step+1)%every == 0 && !t.sampled()
}

// rehearse runs the current micro-batch for the first time if it must run twice, and returns the fingerprint of the
// second time; else it returns nil. On several ranks each runs its first micro-batch twice, at the same time.
func (t *Trainer) rehearse(present, first bool) (*fingerprint, error) {
	if !t.replays() || !first {
		return nil, nil
	}
	err := t.propagate(present, false, &t.first)
	for _, p := range t.model.Params() {
		p.ResetGrad()
	}
	t.enter(Forward)
	return &t.second, err
}

// compare returns a *CorruptionError if the results of the two runs differ in any bit.
func (t *Trainer) compare() error {
	for i, name := range t.first.names {
		if i >= len(t.second.names) || t.second.names[i] != name || t.second.hashes[i] != t.first.hashes[i] {
			return &CorruptionError{Step: t.progress.Step + 1, Tensor: name}
		}
	}
	return nil
}

// CorruptionError means that the same computation gave different bits.
type CorruptionError struct {
	Step   int    // in which it was noticed
	Tensor string // the first that differs
	Dir    string // of the run
}

func (e *CorruptionError) Error() string {
	what := "the gradient of " + e.Tensor
	if e.Tensor == replayedLoss {
		what = e.Tensor
	}
	return fmt.Sprintf("silent data corruption: at step %d the same micro-batch gave other bits the second time, "+
		"first in %s\n"+
		"  this machine's processor, accelerator or memory is faulty or overclocked: test it before you trust it\n"+
		"  the step is not saved; continue on another machine with `anneal resume %s`", e.Step, what,
		shellword.Command(e.Dir))
}
