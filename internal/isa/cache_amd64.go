package isa

// describedCache reads the data cache of a level from CPUID: leaf 4 on Intel's CPUs, 8000001D on AMD's, which has the
// same format.
func describedCache(level uint32) (c Cache, ok bool) {
	leaf := uint32(4)
	if most, _, _, _ := cpuid(0, 0); most < leaf || authenticAMD() {
		if leaf = 0x8000001D; !authenticAMD() {
			return c, false
		}
		if most, _, _, _ := cpuid(0x80000000, 0); most < leaf {
			return c, false
		}
	}
	for sub := range uint32(16) {
		a, b, sets, _ := cpuid(leaf, sub)
		kind := a & 31 // 0: no more caches, 1: data, 2: instructions, 3: both
		if kind == 0 {
			break
		}
		if kind == 2 || a>>5&7 != level {
			continue
		}
		ways, parts, line := int(b>>22)+1, int(b>>12&1023)+1, int(b&4095)+1
		return Cache{Bytes: ways * parts * line * (int(sets) + 1), Ways: ways}, true
	}
	return c, false
}
