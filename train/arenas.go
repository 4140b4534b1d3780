package train

import "anneal/tensor"

type arenaSize struct {
	name string
	size int
}

// newArenas reserves all of the memory or none of it.
func newArenas(sizes ...arenaSize) ([]*tensor.Arena, error) {
	var arenas []*tensor.Arena
	for _, s := range sizes {
		a, err := tensor.NewArena(s.name, s.size)
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
