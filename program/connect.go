package program

import (
	"cmp"
	"slices"
)

// connect adds messages to the lists of computations of each stage. It puts all events of a step, messages and
// computations, in one order, by a clock. The list of a stage holds the events of that stage in this order. Therefore
// stages cannot wait for each other in a circle, even if a send waits until it is received: the first event that is
// not done can always be done.
//
// A send comes right after the computation of its contents. Its receive comes right before the computation that needs
// it, or earlier if the sender computes again before that.
func connect(lists [][]Instr, chunks int) [][]Instr {
	start := clock(lists, chunks)
	events := messages(lists, chunks, start)
	for s, list := range lists {
		for k, i := range list {
			events = append(events, event{at: start[s][k], rank: 3, stage: s, instr: i})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank), cmp.Compare(a.order, b.order))
	})
	connected := make([][]Instr, len(lists))
	for _, e := range events {
		connected[e.stage] = append(connected[e.stage], e.instr)
		if e.instr.Op.Message() {
			to, received := e.instr.Peer(e.stage, len(lists))
			connected[to] = append(connected[to], received)
		}
	}
	return connected
}

// An event is a computation, or a message, which is named by its send. At one time messages come before computations.
// Forward messages come first, because the next stage idles without them. Among messages in one direction, those
// furthest along their way come first: forward those of the last stages, backward those of the first. So a stage sends
// before it waits.
type event struct {
	at, rank, order int
	stage           int
	instr           Instr
}

// messages returns the messages that the lists need, each at the time when the sender computes again or the receiver
// needs it, whichever is first.
func messages(lists [][]Instr, chunks int, start [][]int) (events []event) {
	stages := len(lists)
	if stages == 1 {
		return nil // parts on the same stage need no message
	}
	needed := make([]map[Instr]int, stages) // by receive
	for s, list := range lists {
		needed[s] = map[Instr]int{}
		for k, i := range list {
			switch i.Op {
			case Forward:
				needed[s][Instr{ReceiveForward, i.Micro, i.Chunk}] = start[s][k]
			case Backward, BackwardInput:
				needed[s][Instr{ReceiveBackward, i.Micro, i.Chunk}] = start[s][k]
			}
		}
	}
	for s, list := range lists {
		for k, i := range list {
			send, ok := sendAfter(i, s, stages, chunks)
			if !ok {
				continue
			}
			to, received := send.Peer(s, stages)
			e := event{at: needed[to][received], stage: s, instr: send, rank: 1, order: -s}
			if send.Op == SendBackward {
				e.rank, e.order = 2, s
			}
			if k+1 < len(list) {
				e.at = min(e.at, start[s][k+1])
			}
			events = append(events, e)
		}
	}
	return events
}

// sendAfter returns the message that carries an instruction's result, if a part on another stage needs it.
func sendAfter(i Instr, stage, stages, chunks int) (Instr, bool) {
	part := i.Chunk*stages + stage
	switch {
	case i.Op == Forward && part < stages*chunks-1:
		return Instr{SendForward, i.Micro, i.Chunk}, true
	case (i.Op == Backward || i.Op == BackwardInput) && part > 0:
		return Instr{SendBackward, i.Micro, i.Chunk}, true
	}
	return Instr{}, false
}

// clock returns when each computation starts if a backward takes as long as two forwards, all parts take the same time
// and messages take none.
func clock(lists [][]Instr, chunks int) [][]int {
	stages := len(lists)
	type result struct {
		backward    bool
		part, micro int
	}
	done := map[result]int{}
	start, free := make([][]int, stages), make([]int, stages)
	for moved := true; moved; {
		moved = false
		for s, list := range lists {
			for _, i := range list[len(start[s]):] {
				part, at, known := i.Chunk*stages+s, 0, true
				switch {
				case i.Op == Forward && part > 0:
					at, known = done[result{false, part - 1, i.Micro}]
				case (i.Op == Backward || i.Op == BackwardInput) && part < stages*chunks-1:
					at, known = done[result{true, part + 1, i.Micro}]
				}
				if !known {
					break
				}
				at = max(at, free[s])
				start[s], free[s] = append(start[s], at), at+1
				if i.Op == Backward {
					free[s]++
				}
				if i.Op != BackwardWeights {
					done[result{i.Op != Forward, part, i.Micro}] = free[s]
				}
				moved = true
			}
		}
	}
	return start
}
