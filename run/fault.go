package run

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"anneal/config"
	"anneal/tensor"
)

// FaultVariable is an environment variable that makes one rank fail on purpose when it begins a step, to test the
// other ranks: rank:2:step:3:kill, or hang, panic, slow, nan.
const FaultVariable = "ANNEAL_FAULT"

// fault is the value of FaultVariable.
type fault struct {
	rank, step int
	what       string
	spoils     bool // whether the next gradient that this rank sends is spoiled
}

// slowness is the delay of a slow rank.
const slowness = 3 * time.Second

// readFault reads the variable; without it no rank fails.
func readFault() (f fault, err error) {
	text := os.Getenv(FaultVariable)
	if text == "" {
		return fault{rank: -1}, nil
	}
	_, err = fmt.Sscanf(strings.ReplaceAll(text, ":", " "), "rank %d step %d %s", &f.rank, &f.step, &f.what)
	if err != nil || !slices.Contains([]string{"kill", "hang", "panic", "slow", "nan"}, f.what) {
		return f, config.Problem{
			Message: fmt.Sprintf("%s = %q says no fault", FaultVariable, text),
			Try:     "rank:2:step:3:kill, or hang, panic, slow or nan; or unset it",
		}
	}
	return f, nil
}

// strike makes a rank that begins a step fail, if the fault is for this rank and step.
func (f *fault) strike(rank, step int) {
	if rank != f.rank || step != f.step {
		return
	}
	switch f.what {
	case "kill":
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			p.Kill()
		}
		select {}
	case "hang":
		select {}
	case "panic":
		panic(FaultVariable)
	case "slow":
		time.Sleep(slowness)
	case "nan":
		f.spoils = true
	}
}

// spoil sets one number of the gradient that this rank is about to send to NaN, if the fault asks for it.
func (f *fault) spoil(out [][]tensor.Tensor) {
	if !f.spoils {
		return
	}
	for _, t := range slices.Concat(out...) {
		if t.DType() != tensor.U8 && t.Len() > 0 { // codes of int8 have scales beside them
			t.SetFloat64(0, math.NaN())
			f.spoils = false
			return
		}
	}
}
