package train

import (
	"fmt"

	"anneal/internal/machine"
	"anneal/internal/units"
	"anneal/model"
)

// overhead is what a process takes beside its arenas: code, stacks, packing buffers of the matrix products, tokenizer.
const overhead = 64 << 20

// checkMemory refuses a run that does not fit the bytes that are available for it, if that is known; state is the bytes of the
// optimizer's, average those of the weights' average.
func checkMemory(f model.Footprint, state, average int, available int64) error {
	need := int64(f.Params+f.Grads+state+average+f.Keep+f.Temp+f.Batch) + overhead
	if available == 0 || need <= available {
		return nil
	}
	mib := func(n int) string { return units.FormatBytes(int64(n)) }
	return &MemoryError{Need: need, Available: available, Detail: fmt.Sprintf("parameters %s, gradients %s, optimizer state %s, weight average %s, activations %s, scratch %s",
		mib(f.Params), mib(f.Grads), mib(state), mib(average), mib(f.Keep), mib(f.Temp))}
}

// snapshotFits reports whether there is room, beside the run itself, for the copy of weights and optimizer state that lets a
// checkpoint be written while training goes on.
func snapshotFits(t *Trainer) bool {
	snapshot := int64(0)
	for _, x := range t.checkpointTensors() {
		snapshot += x.Bytes()
	}
	untouched := int64(0) // arenas of the host cost memory only once they are used
	for _, a := range t.arenas {
		if !a.Apart() {
			untouched += int64(a.Size())
		}
	}
	available := machine.ReadMemory().Available
	return available == 0 || snapshot+untouched+overhead <= available
}
