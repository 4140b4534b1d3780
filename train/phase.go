package train

// A Phase is a part of a step.
type Phase int

// The phases of a step. Those from Reading to Backward are of each micro-batch. Waiting for other ranks belongs to the
// phase that waits.
const (
	Reading  Phase = iota
	Forward        // embedding and layers
	Head           // final norm, head and loss, and their gradient
	Backward       // layers and embedding
	Summing        // gradients of micro-batches and ranks, and their norm
	Updating       // until here a step changes no tensor of Trainer.Tensors, but for those that are volatile
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
