package run

import (
	"fmt"
	"math"

	"anneal/checkpoint"
	"anneal/internal/units"
	"anneal/train"
)

// A Better is an earlier evaluation of a run whose bits per byte are clearly lower than those at its end: the run has
// overfitted its text, or its loss has risen for another reason.
type Better struct {
	BitsPerByte float64 `json:"val_bits_per_byte"` // the lowest
	Step        int     `json:"step"`
	Above       float64 `json:"above"` // by which share the last evaluation is above it

	// Kept is the step of the checkpoint with the lowest bits per byte among those that the run keeps, were evaluated
	// and are clearly better than the last; 0 if there is none.
	Kept            int          `json:"checkpoint_step"`
	KeptBitsPerByte train.Number `json:"checkpoint_val_bits_per_byte"` // NaN if there is none
}

// clearly is the share by which an earlier evaluation must be better than the last to be worth a line.
const clearly = 0.01

// better compares the last evaluation of a list with the earlier ones on the same text; nil if none was clearly better.
// kept holds the steps of usable checkpoints.
func better(list []train.Event, kept map[int]bool) *Better {
	last, b := list[len(list)-1], &Better{BitsPerByte: math.Inf(1), KeptBitsPerByte: train.Number(math.NaN())}
	for _, e := range list {
		if !sameText(e, last) || !(last.ValBitsPerByte > (1+clearly)*e.ValBitsPerByte) {
			continue
		}
		if e.ValBitsPerByte < b.BitsPerByte {
			b.BitsPerByte, b.Step = e.ValBitsPerByte, e.Step
		}
		if kept[e.Step] && !(e.ValBitsPerByte >= float64(b.KeptBitsPerByte)) {
			b.KeptBitsPerByte, b.Kept = train.Number(e.ValBitsPerByte), e.Step
		}
	}
	if b.Step == 0 {
		return nil
	}
	b.Above = last.ValBitsPerByte/b.BitsPerByte - 1
	return b
}

// sameText reports whether two evaluations were made on the same text. A resume may change train.eval_tokens or
// train.eval_packing. The loss per token and the bits per byte then have another ratio, which depends on the tokens and
// bytes of the text alone.
func sameText(a, b train.Event) bool {
	x, y := a.ValLoss/a.ValBitsPerByte, b.ValLoss/b.ValBitsPerByte
	return math.Abs(x-y) <= 1e-9*y
}

// better looks for an evaluation of this run that is clearly better than its last. If the metrics cannot be
// read, there is none.
func (s *session) better() *Better {
	s.metrics.flush(metricsPatience)
	list, err := Evaluations(s.Dir, func(string) {})
	if n := len(list); err != nil || n == 0 || list[n-1].Step != s.last.EvalStep {
		return nil
	}
	kept := map[int]bool{}
	entries, _ := checkpoint.List(s.dir.checkpoints())
	for _, e := range entries {
		kept[int(e.Step)] = kept[int(e.Step)] || e.Err == nil
	}
	return better(list, kept)
}

// String says what was better, and how to get it.
func (b *Better) String() string {
	text := fmt.Sprintf("%.4f bits/byte, at step %s; the end is %.0f %% above it. ",
		b.BitsPerByte, units.Commas(b.Step), max(100*b.Above, 1))
	switch {
	case b.Kept == 0:
		return text + "No better checkpoint is kept: train fewer steps, or on more text"
	case b.Kept == b.Step:
		return text + fmt.Sprintf("generate, eval and export take it with --step %d", b.Kept)
	}
	return text + fmt.Sprintf("The best checkpoint that is kept has %.4f: generate, eval and export take it with "+
		"--step %d", b.KeptBitsPerByte, b.Kept)
}
