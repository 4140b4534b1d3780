package dash

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"anneal/run"
	"anneal/train"
)

// This file writes the terminal's lines on the inside of a run: one each for layers, memory and samples, if they are
// known.

// insideLine names the layers with the largest updates and activations, and shows the share of recent steps that were
// clipped.
func (f *follower) insideLine(columns int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var parts []string
	if x, layer := f.table.largest("update_ratios.layers."); layer >= 0 {
		parts = append(parts, fmt.Sprintf("update/weight %s layer %d", digits(train.Number(x), 2), layer))
	}
	if x, place := f.table.largest("activation_rms."); place >= 0 {
		where := "embedding"
		if place > 0 {
			where = fmt.Sprint("layer ", place-1)
		}
		parts = append(parts, fmt.Sprintf("activation %s %s", digits(train.Number(x), 3), where))
	}
	if x, step := f.table.newest("clip_rate_recent"); step > 0 {
		parts = append(parts, percent(train.Number(x))+" clipped")
	}
	if parts == nil {
		return nil
	}
	parts[0] = "largest: " + parts[0]
	return []string{fitting(columns, parts...)}
}

// largest returns the largest of the newest means of the numbers prefix0, prefix1 …, of which some may be missing, and
// its index, the first of equal ones; -1 if there are none.
func (t *table) largest(prefix string) (most float64, which int) {
	most, which = math.Inf(-1), -1
	for name := range t.index {
		number, ours := strings.CutPrefix(name, prefix)
		i, err := strconv.Atoi(number)
		if !ours || err != nil {
			continue
		}
		if x, _ := t.newest(name); x > most || x == most && i < which {
			most, which = x, i
		}
	}
	return most, which
}

const plannedMemory = "planned memory:"

// memoryLine names as many kinds of memory as fit, the largest first.
func memoryLine(r *RunView, columns int) []string {
	if r.Timing == nil {
		return nil
	}
	parts := slices.Clone(r.Timing.Memory)
	slices.SortStableFunc(parts, func(a, b run.MemoryPart) int { return cmp.Compare(b.Predicted, a.Predicted) })
	line := plannedMemory
	for _, p := range parts {
		next := fmt.Sprintf(" %s %s ", p.Name, size(p.Predicted))
		if !(p.Predicted > 0) || len(line)+len(next) > columns {
			break
		}
		line += next
	}
	if line == plannedMemory {
		return nil
	}
	return []string{line}
}

// sampleLine shows the beginning of the model's last text after the first prompt.
func sampleLine(r *RunView) []string {
	if len(r.Samples) == 0 {
		return nil
	}
	s := r.Samples[len(r.Samples)-1]
	if len(s.Texts) == 0 {
		return nil
	}
	text := strings.TrimLeft(s.Texts[0].Prompt+s.Texts[0].Text, " \n\r\t")
	text, _, _ = strings.Cut(text, "\n")
	return []string{fmt.Sprintf("sample at %d: %s", s.Step, strings.ReplaceAll(text, "\t", " "))}
}
