package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// count is a number of something on the command line, where 0 often stands for "all" or "no limit".
type count int

// Validate is called by the parser, which names the flag.
func (n count) Validate() error {
	if n < 0 {
		return fmt.Errorf("%d is not a number from 0 up", n)
	}
	return nil
}

// tokens is a number of tokens on the command line, such as 1e9, 500M or 1B.
type tokens int64

func (n *tokens) UnmarshalText(text []byte) error {
	number, unit := string(text), 1.0
	if i := strings.IndexAny(number, "KkMmBb"); i >= 0 && i == len(number)-1 {
		unit, number = map[byte]float64{'k': 1e3, 'm': 1e6, 'b': 1e9}[number[i]|0x20], number[:i]
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64)
	if err != nil || !(x >= 0 && x*unit < 1<<60) {
		return fmt.Errorf("%q is not a number of tokens; try 500M or 1B", text)
	}
	*n = tokens(x * unit)
	return nil
}

// amount is a quantity on the command line that may be a fraction.
type amount float64

// Validate is called by the parser, which names the flag.
func (a amount) Validate() error {
	if !(a >= 0) || math.IsInf(float64(a), 0) {
		return fmt.Errorf("%v is not a number from 0 up", float64(a))
	}
	return nil
}
