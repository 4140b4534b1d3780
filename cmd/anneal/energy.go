package main

import (
	"fmt"
	"math"
	"time"

	"anneal/internal/machine"
	"anneal/internal/units"
)

// powercap is where energy is read; tests have their own.
var powercap = machine.Powercap

// energyFact says what the processors have used since training began, "" if that cannot be read.
func (s *session) energyFact(elapsed time.Duration) string {
	joules := s.energy.Joules()
	if math.IsNaN(joules) {
		return ""
	}
	whose := "of this machine's processors and all that ran on them"
	if s.world.Size() > 1 {
		whose = "of the processors of rank 0's machine and all that ran on them"
	}
	return fmt.Sprintf("%s J (%.3g Wh), %.3g W on average, %s", units.Commas(int64(joules+0.5)), joules/3600,
		joules/max(elapsed.Seconds(), 1e-3), whose)
}
