// Package draw draws the schedules of pipelines as text and as SVG: a row for a stage, time to the right. It imports
// program and internal/svg. Start reading at text.go.
package draw

import (
	"fmt"

	"anneal/program"
)

// A Panel is one schedule to draw.
type Panel struct {
	Title    string
	Lists    [][]program.Instr // by stage
	Chunks   int
	Timeline program.Timeline // of the lists
}

// letter returns the letter of a computation. A whole backward and the gradient of the input are both B.
func letter(op program.Op) string {
	switch op {
	case program.Forward:
		return "F"
	case program.BackwardWeights:
		return "W"
	default:
		return "B"
	}
}

// label names a computation: F3, or F3b in the second of several chunks.
func (p Panel) label(i program.Instr) string {
	text := fmt.Sprint(letter(i.Op), i.Micro)
	if p.Chunks > 1 {
		text += chunkName(i.Chunk)
	}
	return text
}

// chunkName is a, b, …, z, aa, ab, …
func chunkName(c int) string {
	if c < 26 {
		return string(rune('a' + c))
	}
	return chunkName(c/26-1) + chunkName(c%26)
}

// A bar is a computation of a stage.
type bar struct {
	program.Span
	instr program.Instr
}

// bars returns the computations of a stage.
func (p Panel) bars(stage int) (list []bar) {
	for k, i := range p.Lists[stage] {
		if !i.Op.Message() {
			list = append(list, bar{p.Timeline.Spans[stage][k], i})
		}
	}
	return list
}

// facts describes a stage: its idle share of the step, and the most micro-batches that it keeps.
func (p Panel) facts(stage int) string {
	return fmt.Sprintf("idle %2.0f %%, keeps %d", 100*p.Timeline.Idle[stage]/p.Timeline.Total, p.Timeline.Peak[stage])
}
