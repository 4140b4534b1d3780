package comm

import "fmt"

// Split divides a world into groups of equal size and returns this rank's group: rank m·groups + k of the world is
// rank m of group k. The number of ranks must be a multiple of groups. If groups is 0 or 1, Split returns the world
// itself.
func Split(world Comm, groups int) (Comm, error) {
	if groups < 0 || groups > 1 && world.Size()%groups != 0 {
		return nil, fmt.Errorf("%d ranks cannot be divided into %d groups of equal size\n"+
			"  choose a number of groups that divides the number of ranks", world.Size(), groups)
	}
	if groups <= 1 {
		return world, nil
	}
	var mine []int
	for r := world.Rank() % groups; r < world.Size(); r += groups {
		mine = append(mine, r)
	}
	return world.Group(mine)
}
