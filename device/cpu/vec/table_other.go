//go:build !amd64 && !arm64

package vec

import "anneal/internal/isa"

func float32Table(isa.Tier) Table[float32] { return generic(math32) }
