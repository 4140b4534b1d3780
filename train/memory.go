package train

import (
	"fmt"

	"anneal/internal/machine"
	"anneal/internal/units"
	"anneal/model"
)

// overhead estimates the memory of a process beside its arenas: code, stacks, packing buffers of matrix products,
// tokenizer.
const overhead = 64 << 20

// checkMemory returns an error if a run does not fit in the available bytes, if these are known. state and average
// are the bytes of the optimizer state and of the weights' average.
func checkMemory(f model.Footprint, state, average int, available int64) error {
	need := int64(f.Params+f.Grads+state+average+f.Keep+f.Temp+f.Batch) + overhead
	if available == 0 || need <= available {
		return nil
	}
	mib := func(n int) string { return units.FormatBytes(int64(n)) }
	return &MemoryError{Need: need, Available: available, Detail: fmt.Sprintf("parameters %s, gradients %s, optimizer state %s, weight average %s, activations %s, scratch %s",
		mib(f.Params), mib(f.Grads), mib(state), mib(average), mib(f.Keep), mib(f.Temp))}
}

// snapshotFits reports whether memory allows the copy of weights and optimizer state with which a checkpoint is
// written during training.
func snapshotFits(t *Trainer) bool {
	snapshot := int64(0)
	for _, x := range t.checkpointTensors() {
		snapshot += x.Bytes()
	}
	untouched := int64(0) // host arenas only cost memory once they are used
	for _, a := range t.arenas {
		if !a.Apart() {
			untouched += int64(a.Size())
		}
	}
	available := machine.ReadMemory().Available
	return available == 0 || snapshot+untouched+overhead <= available
}
