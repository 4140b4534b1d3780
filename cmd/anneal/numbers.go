package main

import (
	"fmt"
	"math"
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

// amount is a quantity on the command line that may be a fraction.
type amount float64

// Validate is called by the parser, which names the flag.
func (a amount) Validate() error {
	if !(a >= 0) || math.IsInf(float64(a), 0) {
		return fmt.Errorf("%v is not a number from 0 up", float64(a))
	}
	return nil
}
