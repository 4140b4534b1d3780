package run

import (
	"fmt"
	"os"
	"strings"
	"time"

	"anneal/config"
)

// FaultVariable is an environment variable that breaks one rank on purpose as it begins a step, for tests of what the
// others then do: rank:2:step:3:kill, or hang, panic, slow.
const FaultVariable = "ANNEAL_FAULT"

// fault is what FaultVariable says.
type fault struct {
	rank, step int
	what       string
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
	known := f.what == "kill" || f.what == "hang" || f.what == "panic" || f.what == "slow"
	if err != nil || !known {
		return f, config.Problem{
			Message: fmt.Sprintf("%s = %q says no fault", FaultVariable, text),
			Try:     "rank:2:step:3:kill, or hang, panic or slow; or unset it",
		}
	}
	return f, nil
}

// strike breaks a rank that begins a step, if it is the one.
func (f fault) strike(rank, step int) {
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
	}
}
