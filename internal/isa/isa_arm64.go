package isa

func runs(t Tier) bool {
	switch t {
	case SME:
		return runs(BF16) && matrixBytes() == 64
	case BF16:
		return hasBF16()
	case Generic, NEON: // Go itself needs NEON's registers
		return true
	default:
		return false
	}
}

// fastDot is only called for a tier of amd64.
func fastDot() bool { return false }
