package isa

// A Cache is a level of a core's data cache. Addresses Bytes/Ways apart share a set, which holds Ways lines.
type Cache struct{ Bytes, Ways int }

// FirstLevel returns the first-level data cache of this CPU, or a common one if the CPU does not describe it.
func FirstLevel() Cache {
	if c, ok := describedCache(1); ok {
		return c
	}
	return Cache{32 << 10, 8}
}

// Crowded reports whether rows that are stride bytes apart map to so few sets that the cache cannot hold a line of
// each.
func (c Cache) Crowded(rows, stride int) bool {
	way := c.Bytes / c.Ways
	return way > 0 && stride > 0 && (rows+way/gcd(way, stride)-1)/(way/gcd(way, stride)) > c.Ways
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
