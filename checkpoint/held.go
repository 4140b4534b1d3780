package checkpoint

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// Of several processes that load a checkpoint, each asks only for what it holds: none of them sees that nobody holds
// a tensor. So each says which it holds, and all of that together is checked.

// Held returns which of the tensors of a checkpoint that was loaded are among these: bit k is that of tensor k, in
// order of name.
func (i Info) Held(tensors []Tensor) *big.Int {
	held, names := new(big.Int), i.names()
	for _, t := range tensors {
		if at, ok := slices.BinarySearch(names, t.Name); ok {
			held.SetBit(held, at, 1)
		}
	}
	return held
}

// CheckHeld returns an error that is ErrOtherModel if the checkpoint has tensors that no process holds, of a kind of
// which they hold others. held is the union of what all of them hold.
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

// names are those of the tensors, in order.
func (i Info) names() []string { return slices.Sorted(maps.Keys(i.manifest.Tensors)) }
