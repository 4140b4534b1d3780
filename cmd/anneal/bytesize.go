package main

import (
	"fmt"
	"strconv"
	"strings"
)

// byteSize is an amount of memory, such as 512MiB, 2GiB or 1.5GB.
type byteSize int64

func (b *byteSize) UnmarshalText(text []byte) error {
	number := strings.TrimRight(string(text), "BbiKMGTkmgt")
	unit, ok := map[string]float64{
		"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	}[strings.ToLower(string(text[len(number):]))]
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(n >= 1 && n*unit < 1<<62) {
		return fmt.Errorf("%q is not an amount of memory; try 512MiB or 2GiB", text)
	}
	*b = byteSize(n * unit)
	return nil
}
