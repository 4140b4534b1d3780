package checkpoint

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// When several processes load a checkpoint, each asks only for the tensors that it holds, so no process notices a
// tensor that none of them holds. Therefore each reports the tensors that it holds, and the union is checked.

// Held returns which tensors of a loaded checkpoint are in the list: bit k stands for tensor k, in order of name.
func (i Info) Held(tensors []Tensor) *big.Int {
	held, names := new(big.Int), i.names()
	for _, t := range tensors {
		if at, ok := slices.BinarySearch(names, t.Name); ok {
			held.SetBit(held, at, 1)
		}
	}
	return held
}

// CheckHeld returns an error that is ErrOtherModel if the checkpoint has tensors that no process holds, although
// processes hold other tensors of the same kind. held is the union over all processes.
func (i Info) CheckHeld(held *big.Int) error {
	here, wanted := map[string]bool{}, map[string]bool{}
	for at, name := range i.names() {
		if held.Bit(at) == 1 {
			t := i.manifest.Tensors[name]
			here[name], wanted[t.kind()] = true, true
		}
	}
	if err := asOne(i.manifest.leftOver(here, wanted)); err != nil {
		return fmt.Errorf("checkpoint: %s %w: %w", i.Name, ErrOtherModel, err)
	}
	return nil
}

// names returns the names of the tensors, in order.
func (i Info) names() []string { return slices.Sorted(maps.Keys(i.manifest.Tensors)) }
