package program

// Late returns the lists with every receive right before the computation that needs it. Software that asks for a
// message beforehand waits there and no earlier, and its sends never wait for a receive, so that it can do without the
// order of messages that connect makes. That order supposes that a backward takes as long as two forwards; where it is
// shorter, a receive stands before computations that need not wait for it.
func Late(lists [][]Instr) [][]Instr {
	late := make([][]Instr, len(lists))
	for s, list := range lists {
		received := map[Instr]bool{}
		for _, i := range list {
			if i.Op.Message() && !i.Op.Sends() {
				received[i] = true
				continue
			}
			from := ReceiveForward
			if i.Op != Forward {
				from = ReceiveBackward
			}
			if need := (Instr{from, i.Micro, i.Chunk}); !i.Op.Sends() && i.Op != BackwardWeights && received[need] {
				late[s] = append(late[s], need)
			}
			late[s] = append(late[s], i)
		}
	}
	return late
}
