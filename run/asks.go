package run

import "encoding/binary"

// asks are what the ranks of a run ask of each other at the end of a step. Clocks and signals differ from rank to rank;
// all act after the same step, because each acts on what any of them asked for.
type asks uint32

const (
	askStop    asks = 1 << iota // a signal, or the caller, ends the run
	askSave                     // somebody wants a checkpoint
	askTime                     // train.minutes are over
	askWriting                  // this rank is writing its part of a checkpoint
	askFailed                   // it could not write it
)

// settle tells the other ranks what this one asks for, and returns what any asks for.
func (g group) settle(mine asks) (any asks, err error) {
	if g.alone() {
		return mine, nil
	}
	all, err := g.Share(binary.LittleEndian.AppendUint32(nil, uint32(mine)))
	if err != nil {
		return 0, err
	}
	for _, text := range all {
		any |= asks(binary.LittleEndian.Uint32(text))
	}
	return any, nil
}
