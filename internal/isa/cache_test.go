package isa

import "testing"

// Rows a power of two apart share sets: in 8 ways of 4 KiB twelve rows of 4, 8 or 16 KiB do not fit, rows of 2 KiB and
// rows that are not such a power do. Twelve ways hold all of them.
func TestRowsCrowdTheSetsThatTheyShare(t *testing.T) {
	for _, c := range []struct {
		cache        Cache
		rows, stride int
		crowded      bool
	}{
		{Cache{32 << 10, 8}, 12, 4 << 10, true}, {Cache{32 << 10, 8}, 12, 8 << 10, true},
		{Cache{32 << 10, 8}, 12, 16 << 10, true}, {Cache{32 << 10, 8}, 12, 2 << 10, false},
		{Cache{32 << 10, 8}, 12, 3 << 10, false}, {Cache{32 << 10, 8}, 12, 4<<10 + 64, false},
		{Cache{32 << 10, 8}, 12, 384 * 4, false}, {Cache{32 << 10, 8}, 8, 4 << 10, false},
		{Cache{32 << 10, 8}, 12, 6 << 10, false}, {Cache{32 << 10, 8}, 12, 12 << 10, true},
		{Cache{48 << 10, 12}, 12, 4 << 10, false}, {Cache{48 << 10, 12}, 13, 4 << 10, true},
		{Cache{64 << 10, 4}, 12, 4 << 10, false}, {Cache{64 << 10, 4}, 12, 16 << 10, true},
		{Cache{32 << 10, 8}, 12, 0, false},
	} {
		if got := c.cache.Crowded(c.rows, c.stride); got != c.crowded {
			t.Errorf("%d rows %d bytes apart in %+v: crowded %v, want %v", c.rows, c.stride, c.cache, got, c.crowded)
		}
	}
}

func TestTheFirstLevelIsACache(t *testing.T) {
	if c := FirstLevel(); c.Ways < 1 || c.Ways > 64 || c.Bytes < 8<<10 || c.Bytes > 1<<20 || c.Bytes%c.Ways != 0 {
		t.Errorf("%+v", c)
	}
}
