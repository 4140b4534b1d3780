package train

// A Phase is a part of a step.
type Phase int

// The phases of a step. Reading to Backward happen for each micro-batch. Time spent waiting for other ranks counts in
// the phase that waits.
const (
	Reading  Phase = iota
	Forward        // embedding and layers
	Head           // final norm, head and loss, and their gradient
	Backward       // layers and embedding
	Summing        // gradients of micro-batches and ranks, and their norm
	Updating       // before this phase a step changes only volatile tensors of Trainer.Tensors
	Phases         // how many there are
)

// String returns the name of a phase in messages and files.
func (p Phase) String() string {
	return [...]string{"reading", "forward", "head", "backward", "summing", "update"}[p]
}

func (t *Trainer) enter(p Phase) {
	if t.OnPhase != nil {
		t.OnPhase(p)
	}
}
