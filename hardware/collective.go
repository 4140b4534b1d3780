package hardware

import "math"

// A Collective is an exchange among the ranks of a group.
type Collective uint8

// The collectives.
const (
	AllGather     Collective = iota // bytes: of the whole result
	ReduceScatter                   // bytes: of a rank's whole input
	AllReduce                       // bytes: of a rank's input
	AllToAll                        // bytes: of all that a rank sends, and its own part
)

// A Group is a group of ranks along one axis of a mesh: Size devices, Stride apart. All groups of the axis exchange at
// once. The first begins at device 0, and each begins where the one before ends, so a group may lie across two units of
// a level although it would fit in one.
type Group struct{ Size, Stride int }

// in returns how many ranks of the group a unit of so many devices has. Where groups and units do not divide each
// other, it is the smallest part that a unit may have of a group, because the slowest group decides.
func (g Group) in(unit int) int {
	stride := max(g.Stride, 1)
	return min(g.Size, max(1, greatestCommonDivisor(g.Size*stride, unit)/stride))
}

func greatestCommonDivisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// Time returns how long a collective takes. All levels of the network carry their parts at the same time (rings over
// levels are pipelined), so the slowest decides; latencies add up:
//
//	AllGather, ReduceScatter  at a level that joins u units: bytes·(1 − 1/u) enter each unit, through the links of
//	                          those ranks of the group that the unit has; u−1 messages follow each other
//	AllReduce                 twice that; at most 2·log₂ u messages follow each other, in a tree
//	AllToAll                  a rank sends to those outside its unit through its own link
//
// The network efficiency of the accelerator scales every bandwidth.
func (c *Cluster) Time(op Collective, bytes float64, g Group) float64 {
	if g.Size <= 1 || bytes <= 0 {
		return 0
	}
	rate, latency, inside := 0.0, 0.0, 1 // inside: the group's ranks in a unit of the level
	for i, l := range c.Levels {
		joined := g.in(c.joins(i))
		if i == len(c.Levels)-1 {
			joined = g.Size
		}
		if joined <= inside {
			continue
		}
		units := float64(joined) / float64(inside)
		bandwidth := l.Bandwidth * c.Accelerator.Efficiency().Network
		switch op {
		case AllToAll:
			outside := float64(g.Size-inside) / float64(g.Size)
			rate = max(rate, outside/bandwidth)
			latency += l.Latency * math.Log2(units)
		case AllReduce:
			rate = max(rate, 2*(1-1/units)/(bandwidth*float64(inside)))
			latency += l.Latency * min(2*(units-1), 2*math.Ceil(math.Log2(units))+2)
		default:
			rate = max(rate, (1-1/units)/(bandwidth*float64(inside)))
			latency += l.Latency * min(units-1, ringSteps+math.Log2(units))
		}
		inside = joined
	}
	return bytes*rate + latency
}

// ringSteps is about the number of successive messages of a ring above which libraries use trees instead.
const ringSteps = 64

// Message returns the time of one message between devices from first to last, through the level that joins them all.
func (c *Cluster) Message(bytes float64, first, last int) float64 {
	for i, l := range c.Levels {
		if unit := c.joins(i); first/unit == last/unit || i == len(c.Levels)-1 {
			return l.Latency + bytes/(l.Bandwidth*c.Accelerator.Efficiency().Network)
		}
	}
	return 0
}

// Typical is the efficiency that is assumed for accelerators without published runs.
var Typical = Efficiency{Compute: 0.85, Memory: 0.8, Network: 0.75}

// Efficiency returns the fitted constants, or the typical ones.
func (a *Accelerator) Efficiency() Efficiency {
	if a.Fitted.Compute > 0 {
		return a.Fitted
	}
	return Typical
}
