package vec

import "anneal/device/cpu/isa"

func float32Table(tier isa.Tier) Table[float32] {
	return generic(math32)
}
