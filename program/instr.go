package program

import "fmt"

// An Op is what an instruction does.
type Op uint8

const (
	Forward         Op = iota // compute the part's output
	Backward                  // compute the gradients of the part's input and of its weights
	BackwardInput             // compute the gradient of the part's input only
	BackwardWeights           // compute the gradients of its weights, which BackwardInput has left out
	SendForward               // send the part's output to the next part
	ReceiveForward            // wait for the output of the part before
	SendBackward              // send the gradient of the part's input to the part before
	ReceiveBackward           // wait for the gradient of the part's output from the next part
)

var opNames = [...]string{
	"forward", "backward", "backward of the input", "backward of the weights",
	"send forward", "receive forward", "send backward", "receive backward",
}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// Message reports whether the instruction is one end of a message; all others compute.
func (o Op) Message() bool { return o >= SendForward && o <= ReceiveBackward }

// Sends reports whether the instruction is the sending end of a message.
func (o Op) Sends() bool { return o == SendForward || o == SendBackward }

// An Instr is one step of a stage's program: what to do, for which micro-batch, in which of the stage's chunks. An end
// of a message names the chunk of its own stage: a send names the chunk that computed the contents, a receive the
// chunk that needs them. So the two ends of a message from the last stage to the first have different chunks.
type Instr struct {
	Op    Op
	Micro int // 0 … micro−1
	Chunk int // 0 … chunks−1
}

func (i Instr) String() string {
	return fmt.Sprintf("%v of micro-batch %d, chunk %d", i.Op, i.Micro, i.Chunk)
}

// Peer returns the other end of a message of stage: the other stage, and its instruction.
func (i Instr) Peer(stage, stages int) (int, Instr) {
	part := i.Chunk*stages + stage
	switch i.Op {
	case SendForward:
		i.Op, part = ReceiveForward, part+1
	case ReceiveForward:
		i.Op, part = SendForward, part-1
	case SendBackward:
		i.Op, part = ReceiveBackward, part-1
	case ReceiveBackward:
		i.Op, part = SendBackward, part+1
	default:
		panic("program: " + i.String() + " is not a message")
	}
	i.Chunk = part / stages
	return part % stages, i
}
