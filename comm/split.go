package comm

// Split divides a world into groups of equal size and returns this rank's group: rank m·groups + k of the world is
// rank m of group k. The number of ranks must be a multiple of groups. If groups is 0 or 1, Split returns the world
// itself.
func Split(world Comm, groups int) Comm {
	if groups <= 1 {
		return world
	}
	var mine []int
	for r := world.Rank() % groups; r < world.Size(); r += groups {
		mine = append(mine, r)
	}
	group, err := world.Group(mine)
	if err != nil {
		panic(err) // the list is right
	}
	return group
}
