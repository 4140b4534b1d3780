package main

import (
	"fmt"
	"math"

	"anneal/internal/machine"
	"anneal/internal/units"
)

// powercap is the directory from which energy is read; tests replace it.
var powercap = machine.Powercap

// energyFact describes the energy that the processors have used since training began; it is "" if unknown.
func (s *session) energyFact() string {
	joules := s.energy.Joules()
	if math.IsNaN(joules) {
		return ""
	}
	whose := "of this machine's processors and all that ran on them"
	if s.world.Size() > 1 {
		whose = "of the processors of rank 0's machine and all that ran on them"
	}
	return fmt.Sprintf("%s J (%.3g Wh), %.3g W on average, %s", units.Commas(int64(joules+0.5)), joules/3600,
		s.energy.Watts(joules), whose)
}
