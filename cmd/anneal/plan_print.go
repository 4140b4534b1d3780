package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"anneal/internal/units"
	"anneal/plan/cluster"
)

// A plannedRun is the JSON of a plan.
type plannedRun struct {
	Fits   bool          `json:"fits"`
	Reason string        `json:"reason,omitempty"` // if it does not fit
	Ranks  []plannedRank `json:"ranks"`
	*cluster.Step
	Days     float64            `json:"days"`
	Hours    float64            `json:"gpu_hours"`
	Cost     *float64           `json:"cost"` // null without a price
	Mesh     cluster.Mesh       `json:"mesh"`
	Rejected []cluster.Rejected `json:"rejected"`
	Front    []plannedRun       `json:"front,omitempty"`   // of a search
	Remarks  []string           `json:"remarks,omitempty"` // such as a precision that the accelerator lacks
}

// A plannedRank describes the ranks of a stage, which are all alike.
type plannedRank struct {
	Stage  int            `json:"stage"`
	Ranks  int            `json:"ranks"`
	Memory cluster.Memory `json:"memory"`
	Bytes  float64        `json:"memory_bytes"`
}

func planned(r *cluster.Run, step *cluster.Step, tokens float64) plannedRun {
	p := plannedRun{Step: step, Mesh: r.Mesh, Rejected: []cluster.Rejected{}}
	for i, m := range r.Memory(step) {
		p.Ranks = append(p.Ranks, plannedRank{i, r.Mesh.Ranks() / r.Mesh.Pipeline, m, m.Total()})
	}
	if p.Fits = p.fullest().Bytes <= usable(r); !p.Fits {
		p.Reason = p.excess(r) + ". " + r.TooSmall()
	}
	a, asked := r.Cluster.Accelerator, r.Mesh.Precision
	if has := a.Computes(asked); has != asked {
		p.Remarks = []string{
			fmt.Sprintf("%s has no matrix products in %s: their times are those of %s", a.Name, asked, has),
		}
	}
	seconds := tokens / step.Tokens
	p.Days, p.Hours = seconds/86400, seconds/3600*float64(r.Cluster.Devices)
	if price := r.Cluster.Price; price > 0 {
		cost := price * p.Hours
		p.Cost = &cost
	}
	return p
}

// usable returns the bytes of a device that a plan may fill.
func usable(r *cluster.Run) float64 { return cluster.Usable * r.Cluster.Accelerator.Memory }

func (p plannedRun) fullest() (most plannedRank) {
	for _, k := range p.Ranks {
		if k.Bytes > most.Bytes {
			most = k
		}
	}
	return most
}

// excess describes the memory of the fullest rank.
func (p plannedRun) excess(r *cluster.Run) string {
	most := p.fullest()
	return fmt.Sprintf("a rank of stage %d needs %.1f GiB; %.1f GiB of a device can be used", most.Stage,
		most.Bytes/gibi, usable(r)/gibi)
}

func (c planCmd) print(s *session, r *cluster.Run, step *cluster.Step, tokens float64) error {
	p := planned(r, step, tokens)
	if err := c.drawStep(s, r); err != nil {
		return err
	}
	err := s.picture(c.SVG, func(w io.Writer) error { return memorySVG(w, r, p) })
	if err != nil {
		return err
	}
	if s.json {
		if err := unfitCluster(r, p); err != nil {
			return err
		}
		return s.emit(p)
	}
	s.describe(r, p, tokens)
	if err := c.printStep(s, r); err != nil {
		return err
	}
	return unfitCluster(r, p)
}

// describe prints a plan for people.
func (s *session) describe(r *cluster.Run, p plannedRun, tokens float64) {
	for _, remark := range p.Remarks {
		s.warn(remark)
	}
	all, active := r.Shape.Parameters()
	s.printf("%s: %s parameters", r.Shape.Name, billions(all))
	if active < all {
		s.printf(", %s of them for a token", billions(active))
	}
	s.printf(" on %s\n  %s\n", r.Cluster, r.Cluster.Accelerator.Describe(r.Mesh.Precision))
	verdict := "fits:          "
	if !p.Fits {
		verdict = "does not fit:  "
	}
	s.prosef("               ", "%s%s\n", verdict, p.excess(r))
	s.printf("mesh           %s, %s of %s a step\n", r.Mesh, units.Count(r.Batch, "sequence"),
		units.Count(r.Shape.Context, "token"))
	s.printf("step           %s: %s tokens/s, MFU %.1f %%, HFU %.1f %%\n", stepTime(p.Seconds),
		units.Commas(int64(p.Tokens)), 100*p.MFU, 100*p.HFU)
	s.phases(p)
	s.printf("training       %s tokens: %s, %s device hours", tokenAmount(tokens), days(p.Days), hundredths(p.Hours))
	if p.Cost != nil {
		s.printf(", cost %s", hundredths(*p.Cost))
	}
	s.printf("\nmemory         of a rank of each stage; the line is %.0f GiB\n", r.Cluster.Accelerator.Memory/gibi)
	s.bars(p, r.Cluster.Accelerator.Memory)
}

// phases prints how the time of a step is divided.
func (s *session) phases(p plannedRun) {
	for _, x := range []struct {
		name string
		t    float64
	}{
		{"forward", p.Phases.Forward}, {"backward", p.Phases.Backward}, {"recompute", p.Phases.Recompute},
		{"tensor messages", p.Phases.Tensor}, {"layer messages", p.Phases.Other}, {"data messages", p.Phases.Data},
		{"optimizer", p.Phases.Optimizer}, {"idle", p.Phases.Idle},
	} {
		if x.t > 0.0005*p.Seconds {
			share := x.t / p.Seconds
			line := fmt.Sprintf("  %-16s %10s %5.1f %%  %s", x.name, stepTime(x.t), 100*share,
				strings.Repeat("█", int(40*share+0.5)))
			s.printf("%s\n", strings.TrimRight(line, " "))
		}
	}
}

// gibi is the bytes of a GiB, the unit of devices' memory.
const gibi = 1 << 30

// barWide is the width in columns of a device's memory on the terminal; memory beyond it extends to the right.
const barWide, barMost = 50, 66

// bars draws the memory of each stage; if there are many, only the first and last ones.
func (s *session) bars(p plannedRun, device float64) {
	for i, k := range p.Ranks {
		if len(p.Ranks) > 8 && i > 2 && i < len(p.Ranks)-2 {
			if i == 3 {
				s.printf("  …\n")
			}
			continue
		}
		s.printf("  stage %-3d %8s GiB  %s\n", k.Stage, oneDecimal(k.Bytes/gibi), bar(k, device))
	}
	names := make([]string, len(memoryParts))
	for i, part := range memoryParts {
		names[i] = part.letter + " " + part.name
	}
	s.printf("  %s\n", strings.Join(names, "  "))
}

// bar draws the memory of a rank, a column for each fiftieth of a device, with a line where the device ends.
func bar(k plannedRank, device float64) string {
	line, sum := "", 0.0
	for _, part := range memoryParts {
		sum += part.bytes(k.Memory)
		if cells := min(int(barWide*sum/device+0.5), barMost); cells > len(line) {
			line += strings.Repeat(part.letter, cells-len(line))
		}
	}
	if len(line) <= barWide {
		return fmt.Sprintf("%-*s│", barWide, line)
	}
	text := line[:barWide] + "│" + line[barWide:]
	if len(line) == barMost {
		text += "…"
	}
	return text
}

// billions writes a number of parameters.
func billions(n float64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.0fM", n/1e6)
	}
	return fmt.Sprintf("%.1fB", n/1e9)
}

// tokenAmount writes a number of tokens.
func tokenAmount(n float64) string {
	switch {
	case n < 999.5e6:
		return fmt.Sprintf("%.3gM", n/1e6)
	case n < 999.5e9:
		return fmt.Sprintf("%.3gB", n/1e9)
	}
	return fmt.Sprintf("%.3gT", n/1e12)
}

// stepTime writes seconds of a step with the digits that matter.
func stepTime(s float64) string {
	if s < 0.1 {
		return fmt.Sprintf("%.2f ms", 1e3*s)
	}
	return fmt.Sprintf("%.3f s", s)
}

// days writes how long a training takes.
func days(d float64) string {
	switch {
	case d < 1.0/24:
		return inWholeSeconds(86400 * d).String()
	case d < 1:
		return fmt.Sprintf("%.1f hours", 24*d)
	}
	return oneDecimal(d) + " days"
}

// hundredths writes hours or money: two decimals below 100, whole numbers from there.
func hundredths(x float64) string {
	switch {
	case x > 0 && x < 0.005:
		return "under 0.01"
	case x < 99.995:
		return fmt.Sprintf("%.2f", x)
	case x < 1e15:
		return units.Commas(int64(math.Round(x)))
	}
	return fmt.Sprintf("%.2e", x)
}

func oneDecimal(x float64) string {
	if x >= 1000 {
		return units.Commas(int64(x + 0.5))
	}
	return fmt.Sprintf("%.1f", x)
}
