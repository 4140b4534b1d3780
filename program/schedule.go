package program

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Names are the schedules as Parse reads them.
const Names = "gpipe, 1f1b, interleaved:V with V chunks of the model on each stage (for example interleaved:2), zb-h1"

// A Schedule is the order in which stages work on micro-batches.
type Schedule struct {
	Name   string // gpipe, 1f1b, interleaved or zb-h1
	Chunks int    // of the model on each stage: 1 unless interleaved
}

// Parse reads a schedule's name in a configuration.
func Parse(text string) (Schedule, error) {
	switch text {
	case "gpipe", "1f1b", "zb-h1":
		return Schedule{Name: text, Chunks: 1}, nil
	}
	if v, ok := strings.CutPrefix(text, "interleaved:"); ok {
		if n, err := strconv.Atoi(v); err == nil && n >= 1 && strconv.Itoa(n) == v {
			return Schedule{Name: "interleaved", Chunks: n}, nil
		}
	}
	return Schedule{}, fmt.Errorf("there is no schedule %q: use one of %s", text, Names)
}

// String returns the text that Parse reads.
func (s Schedule) String() string {
	if s.Name == "interleaved" {
		return fmt.Sprintf("interleaved:%d", s.Chunks)
	}
	return s.Name
}

// Make returns the schedule's lists by stage, with the messages between stages.
func (s Schedule) Make(stages, micro int) ([][]Instr, error) {
	if stages < 1 || micro < 1 {
		return nil, fmt.Errorf("a pipeline of %d stages and %d micro-batches: both must be at least 1", stages, micro)
	}
	switch s.Name {
	case "gpipe":
		return GPipe(stages, micro), nil
	case "1f1b":
		return OneForwardOneBackward(stages, micro), nil
	case "zb-h1":
		return ZeroBubble(stages, micro), nil
	default:
		return Interleaved(stages, s.Chunks, micro)
	}
}

// Fit is Make for any number of micro-batches: an interleaved schedule is made for the next multiple of its stages,
// and the micro-batches that do not exist are left out.
func (s Schedule) Fit(stages, micro int) ([][]Instr, error) {
	whole := micro
	if s.Name == "interleaved" && stages > 0 {
		whole = (micro + stages - 1) / stages * stages
	}
	lists, err := s.Make(stages, whole)
	for stage, list := range lists {
		lists[stage] = slices.DeleteFunc(list, func(i Instr) bool { return i.Micro >= micro })
	}
	return lists, err
}
