package train

import (
	"slices"

	"anneal/device"
	"anneal/tensor"
)

// newArenas reserves all arenas, or none if one fails.
func newArenas(m device.Memory, list []Part) ([]*tensor.Arena, error) {
	var arenas []*tensor.Arena
	for _, p := range list {
		a, err := m.NewArena(p.Name, int(p.Bytes))
		if err != nil {
			closeArenas(arenas)
			return nil, err
		}
		arenas = append(arenas, a)
	}
	return arenas, nil
}

// arenaOf returns the arena with the given name; nil if there is none.
func arenaOf(arenas []*tensor.Arena, name string) *tensor.Arena {
	if i := slices.IndexFunc(arenas, func(a *tensor.Arena) bool { return a.Name() == name }); i >= 0 {
		return arenas[i]
	}
	return nil
}

func closeArenas(arenas []*tensor.Arena) {
	for _, a := range arenas {
		a.Close()
	}
}
