package plan

import (
	"fmt"
	"math"
	"slices"

	"anneal/comm/absent"
	"anneal/config"
	"anneal/device"
	"anneal/internal/units"
	"anneal/model"
	"anneal/parallel"
	"anneal/train"
)

// A Least is the smallest number of ranks, each with its own device, that a run with ZeRO 3 fits on. It comes from
// plans of such meshes.
type Least struct {
	Device int64 `json:"device_bytes"`
	State  int   `json:"ranks_for_state"` // ranks for weights, gradients and optimizer state; 0 if no number is enough
	All    int   `json:"ranks"`           // ranks with activations and everything else; 0 if no number is enough
	Tensor int   `json:"tensor"`          // ranks that share every layer, with All
}

const (
	cardMemory   = 80 << 30 // of the device that is suggested by default
	cardReserved = 2 << 30  // part of it for drivers and communicators
	mostRanks    = 4096     // that are tried
	mostTensor   = 8        // a host's devices
)

// leastCards returns how many common accelerators a run needs.
func leastCards(cfg *config.Config) *Least {
	l := leastOf(cfg, train.AbsentDevice("cuda"), cardMemory-cardReserved)
	l.Device = cardMemory
	return l
}

// leastOf returns how many devices with the given bytes a run needs. It keeps the tensor parallelism of the run's
// mesh; if the mesh has none, it takes the one that needs the fewest devices.
func leastOf(cfg *config.Config, dev device.Properties, bytes int64) *Least {
	l := &Least{Device: bytes}
	tensor, _, _ := cfg.Parallel.Mesh()
	for t := tensor; t == tensor || tensor == 1 && t <= mostTensor; t *= 2 {
		try := cfg.Clone()
		try.Parallel.Zero, try.Parallel.Tensor = 3, t
		needs := map[int][2]int64{}
		need := func(ranks, what int) int64 {
			if _, known := needs[ranks]; !known {
				state, all, err := largest(try, dev, ranks)
				if err != nil {
					state, all = math.MaxInt64, math.MaxInt64
				}
				needs[ranks] = [2]int64{state, all}
			}
			return needs[ranks][what]
		}
		unit := try.Parallel.Shared()
		state := fewest(unit, bytes, func(ranks int) int64 { return need(ranks, 0) })
		all := fewest(unit, bytes, func(ranks int) int64 { return need(ranks, 1) })
		if state > 0 && (l.State == 0 || state < l.State) {
			l.State = state
		}
		if all > 0 && (l.All == 0 || all < l.All) {
			l.All, l.Tensor = all, t
		}
	}
	return l
}

// fewest returns the smallest number of ranks, a multiple of unit and at most mostRanks, with which a rank needs no
// more than the given bytes; 0 if there is none. It assumes that a rank needs no more memory with more ranks, and with
// k times as many ranks at least a k-th. If doubling the ranks saves less than a hundredth, no number is enough.
func fewest(unit int, bytes int64, need func(ranks int) int64) int {
	most := mostRanks / unit
	low, high := 0, 1                                     // in units: too few, perhaps enough
	above, below := int64(math.MaxInt64), need(high*unit) // what they need
	for below > bytes {
		if high >= most || below < math.MaxInt64 && below > above-above/100 {
			return 0
		}
		next := 2 * high
		if below < math.MaxInt64 {
			next = max(next, int(min(float64(high)*float64(below)/float64(bytes), mostRanks)))
		}
		low, high, above = high, min(next, most), below
		below = need(high * unit)
	}
	for try := 0; high-low > 1; try++ {
		middle := (low + high) / 2
		if low > 0 && above < math.MaxInt64 && try%3 < 2 { // fit a divided and a whole part
			divided := float64(above-below) / (1/float64(low) - 1/float64(high))
			k := 1 / (1/float64(high) + float64(bytes-below)/divided)
			middle = min(max(int(math.Ceil(k)), low+1), high-1)
		}
		if n := need(middle * unit); n <= bytes {
			high, below = middle, n
		} else {
			low, above = middle, n
		}
	}
	return high * unit
}

// largest returns the most bytes that a rank of a mesh has: of weights, gradients and optimizer state, and in all. It
// measures two ranks of each stage of the pipeline: the first, and the one that owns most.
func largest(cfg *config.Config, dev device.Properties, ranks int) (state, all int64, err error) {
	try := cfg.Clone()
	try.Parallel.Ranks = ranks
	tensor, _, stages := try.Parallel.Mesh()
	for s := range stages {
		first, n := s*ranks/stages, ranks/stages/tensor
		f, err := train.MeasureRank(try, dev, absent.New(first, ranks, false))
		if err != nil {
			return 0, 0, err
		}
		elements := owned(try, model.DeclarePart(f.Model, f.Here), n)
		owner := slices.Index(elements, slices.Max(elements))
		g, err := train.MeasureRank(try, dev, absent.New(first+tensor*owner, ranks, false))
		if err != nil {
			return 0, 0, err
		}
		for _, f := range []*train.Footprint{f, g} {
			kept := int64(0)
			for _, name := range []string{
				train.Parameters, train.Gradients, train.OptimizerState, parallel.MasterWeights, train.WeightAverage,
			} {
				kept += f.Bytes(name)
			}
			state, all = max(state, kept), max(all, f.Total())
		}
	}
	return state, all, nil
}

// String describes l in words, such as "14 × 80 GB are the least for the state with zero=3; 16 leave room for
// activations".
func (l *Least) String() string {
	device, with := deviceSize(l.Device), "zero=3"
	if l.Tensor > 1 {
		with += fmt.Sprint(", tensor=", l.Tensor)
	}
	switch {
	case l.State == 0:
		return fmt.Sprintf("no number of devices of %s is enough", device)
	case l.All == 0:
		return fmt.Sprintf("%d × %s are the least for the state with zero=3, but no number leaves room for "+
			"activations: a smaller train.micro_batch or memory.recompute=every_layer needs less", l.State, device)
	case l.All == 1:
		return fmt.Sprintf("1 × %s is enough", device)
	case l.All == l.State:
		return fmt.Sprintf("%d × %s are the least, with %s", l.All, device, with)
	}
	return fmt.Sprintf("%d × %s are the least for the state with zero=3; %d leave room for activations (%s)", l.State,
		device, l.All, with)
}

// Enough is String, or "" if l is nil.
func (l *Least) Enough() string {
	if l == nil {
		return ""
	}
	return l.String()
}

// deviceSize formats an amount of memory as manufacturers do: in GB if it is a whole number of GB.
func deviceSize(n int64) string {
	switch {
	case n == cardMemory:
		return "80 GB"
	case n%1e9 == 0:
		return fmt.Sprintf("%d GB", n/1e9)
	}
	return units.FormatBytes(n)
}

// Verdict says in a sentence whether the run fits, such as "does not fit: needs 1,086.0 GiB, this machine has 21.0
// GiB: 14 × 80 GB are the least …".
func (f *Foresight) Verdict() string {
	needs, has := "needs "+units.FormatBytes(f.Bytes), "this machine has"
	if f.Bytes >= 1e6<<20 {
		needs += fmt.Sprintf(" (%d GB)", f.Bytes/1e9)
	}
	switch r := f.Ranks; {
	case r == nil:
	case r.Here:
		needs = fmt.Sprintf("all %d ranks in one process need %s", r.Count, units.FormatBytes(f.Bytes))
	case f.given:
		needs = "a rank needs at most " + units.FormatBytes(f.Bytes)
	default:
		needs = "a rank on a machine like this needs at most " + units.FormatBytes(f.Bytes)
	}
	if f.given {
		has = "a device has"
	}
	switch {
	case f.Available == 0:
		return needs + "; how much memory is available is not known"
	case f.Fits:
		return fmt.Sprintf("fits: %s of %s available", needs, deviceSize(f.Available))
	}
	text := fmt.Sprintf("does not fit: %s, %s %s", needs, has, deviceSize(f.Available))
	if f.Least != nil {
		text += ": " + f.Least.String()
	}
	return text
}
