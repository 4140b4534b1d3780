package train

// A Phase is a part of a step.
type Phase int

const (
	Reading   Phase = iota // a micro-batch
	Computing              // its forward and backward pass
	Updating
)

func (t *Trainer) enter(p Phase) {
	if t.OnPhase != nil {
		t.OnPhase(p)
	}
}
