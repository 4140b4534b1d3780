package main

import (
	"fmt"

	"anneal/internal/units"
)

// byteSize is an amount of memory, such as 512MiB, 2GiB or 1.5GB.
type byteSize int64

func (b *byteSize) UnmarshalText(text []byte) error {
	n, err := units.Bytes(string(text))
	if err != nil {
		return fmt.Errorf("%q is %w", text, err)
	}
	*b = byteSize(n)
	return nil
}
