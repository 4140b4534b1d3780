package train

import (
	"anneal/device"
	"anneal/tensor"
)

type arenaSize struct {
	name string
	size int
}

// newArenas reserves all of the arenas or none.
func newArenas(m device.Memory, sizes ...arenaSize) ([]*tensor.Arena, error) {
	var arenas []*tensor.Arena
	for _, s := range sizes {
		a, err := m.NewArena(s.name, s.size)
		if err != nil {
			closeArenas(arenas)
			return nil, err
		}
		arenas = append(arenas, a)
	}
	return arenas, nil
}

func closeArenas(arenas []*tensor.Arena) {
	for _, a := range arenas {
		a.Close()
	}
}
