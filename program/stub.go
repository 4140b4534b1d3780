package program

type Op uint8

const (
	Forward Op = iota
	Backward
	BackwardInput
	BackwardWeights
	SendForward
	ReceiveForward
	SendBackward
	ReceiveBackward
)

type Instr struct {
	Op           Op
	Micro, Chunk int
}

func Make(name string, p, m int) ([][]Instr, error) {
	lists := make([][]Instr, p)
	for s := range lists {
		add := func(op Op, i int) { lists[s] = append(lists[s], Instr{op, i, 0}) }
		f := func(i int) {
			if s > 0 {
				add(ReceiveForward, i)
			}
			add(Forward, i)
			if s < p-1 {
				add(SendForward, i)
			}
		}
		b := func(i int) {
			if s < p-1 {
				add(ReceiveBackward, i)
			}
			add(Backward, i)
			if s > 0 {
				add(SendBackward, i)
			}
		}
		w := min(p-s-1, m)
		if name == "gpipe" {
			w = m
		}
		for i := range w {
			f(i)
		}
		for i := w; i < m; i++ {
			f(i)
			b(i - w)
		}
		for i := m - w; i < m; i++ {
			b(i)
		}
	}
	return lists, nil
}
func Chunks(name string) (int, error) { return 1, nil }
