package program

// Late returns the lists with every receive right before the computation that needs it. Use it for software that posts
// receives in advance, so that it waits only where the message is needed and its sends never wait for a receive. Such
// software does not need the order of connect. That order supposes that a backward takes as long as two forwards; if
// it is shorter, a receive may come before computations that need not wait for it.
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
