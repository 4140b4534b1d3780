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

// FaultVariable is an environment variable that breaks one rank on purpose as it begins a step, for tests of what the
// others then do: rank:2:step:3:kill, or hang, panic, slow, nan.
const FaultVariable = "ANNEAL_FAULT"

// fault is what FaultVariable says.
type fault struct {
	rank, step int
	what       string
	spoils     bool // the next gradient that this rank sends
}

// slowness is how long a slow rank takes more.
const slowness = 3 * time.Second

// readFault reads the variable; without it nothing is broken.
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

// strike breaks a rank that begins a step, if it is the one.
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

// spoil makes a number of the gradient that this rank is about to send NaN, if the fault says so.
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
