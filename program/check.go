package program

import (
	"errors"
	"fmt"
	"strings"
)

// Check returns an error unless the lists of a step, one per stage, are sound:
//   - every part computes every micro-batch forward and backward once, in this order, and what it needs from
//     another stage has been received and what another stage needs is sent after it is made, once;
//   - the gradients of a part's weights are added in the order of the micro-batches, so that their sum has the bits
//     of a single rank's;
//   - the messages between two stages are received in the order in which they are sent;
//   - the lists run to their end even if a send waits until it is received.
func Check(lists [][]Instr, chunks int) error {
	micro := 0
	for _, list := range lists {
		for _, i := range list {
			micro = max(micro, i.Micro+1)
		}
	}
	if micro == 0 {
		return errors.New("the lists compute no micro-batch")
	}
	for s, list := range lists {
		c := stageCheck{stage: s, stages: len(lists), chunks: chunks, micro: micro, done: map[Instr]int{}}
		if err := c.check(list); err != nil {
			return fmt.Errorf("stage %d: %w", s, err)
		}
	}
	return rendezvous(lists)
}

// A stageCheck reads the list of one stage.
type stageCheck struct {
	stage, stages, chunks, micro int

	done map[Instr]int // how often each instruction has occurred
}

func (c *stageCheck) check(list []Instr) error {
	for k, i := range list {
		if i.Micro < 0 || i.Chunk < 0 || i.Chunk >= c.chunks || i.Op > ReceiveBackward {
			return fmt.Errorf("instruction %d: %v does not exist with %d chunks", k, i, c.chunks)
		}
		if c.done[i] > 0 {
			return fmt.Errorf("instruction %d: %v comes twice", k, i)
		}
		for _, before := range c.before(i) {
			if c.done[before] == 0 {
				return fmt.Errorf("instruction %d: %v has no %v before it", k, i, before)
			}
		}
		c.done[i]++
	}
	for chunk := range c.chunks {
		for micro := range c.micro {
			if err := c.complete(micro, chunk); err != nil {
				return err
			}
		}
	}
	return nil
}

// before returns the instructions that must come before an instruction.
func (c *stageCheck) before(i Instr) (list []Instr) {
	same := func(op Op) Instr { return Instr{op, i.Micro, i.Chunk} }
	switch i.Op {
	case Forward:
		if c.hears(ReceiveForward, i.Chunk) {
			list = append(list, same(ReceiveForward))
		} else if i.Chunk > 0 {
			list = append(list, Instr{Forward, i.Micro, i.Chunk - 1})
		}
	case Backward, BackwardInput:
		list = append(list, same(Forward))
		if c.hears(ReceiveBackward, i.Chunk) {
			list = append(list, same(ReceiveBackward))
		} else if i.Chunk < c.chunks-1 {
			list = append(list, c.backward(i.Micro, i.Chunk+1))
		}
	case BackwardWeights:
		list = append(list, same(BackwardInput))
	case SendForward:
		list = append(list, same(Forward))
	case SendBackward:
		list = append(list, c.backward(i.Micro, i.Chunk))
	}
	if (i.Op == Backward || i.Op == BackwardWeights) && i.Micro > 0 {
		list = append(list, c.weights(i.Micro-1, i.Chunk))
	}
	return list
}

// backward returns the instruction that computes the gradient of the input: BackwardInput if the list has had it, else
// Backward.
func (c *stageCheck) backward(micro, chunk int) Instr {
	if i := (Instr{BackwardInput, micro, chunk}); c.done[i] > 0 {
		return i
	}
	return Instr{Backward, micro, chunk}
}

// weights returns the instruction that computes the gradients of the weights: BackwardWeights if the list has had it,
// else Backward.
func (c *stageCheck) weights(micro, chunk int) Instr {
	if i := (Instr{BackwardWeights, micro, chunk}); c.done[i] > 0 {
		return i
	}
	return Instr{Backward, micro, chunk}
}

// hears reports whether a chunk of this stage exchanges messages of this kind with a part on another stage.
func (c *stageCheck) hears(op Op, chunk int) bool {
	part := chunk*c.stages + c.stage
	if op == ReceiveForward || op == SendBackward {
		return c.stages > 1 && part > 0
	}
	return c.stages > 1 && part < c.stages*c.chunks-1
}

// complete returns which instructions of a micro-batch are missing or superfluous at the end of the list.
func (c *stageCheck) complete(micro, chunk int) error {
	times := func(op Op) int { return c.done[Instr{op, micro, chunk}] }
	for _, op := range []Op{SendForward, ReceiveForward, SendBackward, ReceiveBackward} {
		want := 0
		if c.hears(op, chunk) {
			want = 1
		}
		if times(op) != want {
			return fmt.Errorf("%v comes %d times instead of %d", Instr{op, micro, chunk}, times(op), want)
		}
	}
	if times(Forward) != 1 {
		return fmt.Errorf("%v is missing", Instr{Forward, micro, chunk})
	}
	if times(Backward)+times(BackwardInput) != 1 || times(BackwardInput) != times(BackwardWeights) {
		return fmt.Errorf("micro-batch %d, chunk %d has %d times %v, %d times %v and %d times %v: "+
			"it needs the first once, or each of the other two", micro, chunk, times(Backward), Backward,
			times(BackwardInput), BackwardInput, times(BackwardWeights), BackwardWeights)
	}
	return nil
}

// rendezvous runs the lists with sends that wait until they are received, and returns an error that explains why they
// stop before their end.
func rendezvous(lists [][]Instr) error {
	next := make([]int, len(lists))
	head := func(s int) (Instr, bool) {
		for ; next[s] < len(lists[s]); next[s]++ {
			if i := lists[s][next[s]]; i.Op.Message() {
				return i, true
			}
		}
		return Instr{}, false
	}
	for moved := true; moved; {
		moved = false
		for s := range lists {
			i, ok := head(s)
			if !ok || !i.Op.Sends() {
				continue
			}
			to, want := i.Peer(s, len(lists))
			there, ok := head(to)
			if !ok || there.Op.Sends() {
				continue
			}
			if from, _ := there.Peer(to, len(lists)); from != s {
				continue
			}
			if there != want {
				return fmt.Errorf("stage %d is at %v when stage %d waits for another message of it: %v",
					s, i, to, there)
			}
			next[s]++
			next[to]++
			moved = true
		}
	}
	var waiting []string
	for s := range lists {
		if i, ok := head(s); ok {
			waiting = append(waiting, fmt.Sprintf("stage %d at %v", s, i))
		}
	}
	if waiting == nil {
		return nil
	}
	return fmt.Errorf("the stages wait for each other: %s", strings.Join(waiting, ", "))
}
