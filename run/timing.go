package run

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"time"

	"anneal/plan"
	"anneal/train"
)

// phaseClock adds up how long the phases of steps take.
type phaseClock struct {
	phaseTimes
	told  phaseTimes // phase times at the last call of lately
	in    train.Phase
	since time.Time // zero between steps
}

// phaseTimes holds the times of phases, summed over steps.
type phaseTimes struct {
	spent [train.Phases]time.Duration
	steps int
}

// enter ends the current phase, if there is one, and begins another.
func (c *phaseClock) enter(p train.Phase) {
	now := time.Now()
	if !c.since.IsZero() {
		c.spent[c.in] += now.Sub(c.since)
	}
	c.in, c.since = p, now
}

// endStep ends a step. With warmUp its time does not count: the first step of a process touches its memory for the
// first time.
func (c *phaseClock) endStep(warmUp bool) {
	c.enter(c.in)
	c.since = time.Time{}
	if warmUp {
		*c = phaseClock{}
		return
	}
	c.steps++
}

// lately returns the mean seconds of each phase in a step since the last call; nil if no step was measured.
func (c *phaseClock) lately() map[string]train.Number {
	steps := c.steps - c.told.steps
	if steps == 0 {
		return nil
	}
	means := map[string]train.Number{}
	for p := range train.Phases {
		means[p.String()] = train.Number((c.spent[p] - c.told.spent[p]).Seconds() / float64(steps))
	}
	c.told = c.phaseTimes
	return means
}

// Timing compares the predicted time and memory of a run with the measured ones.
type Timing struct {
	Steps     int                  `json:"steps"` // measured: all steps of this process except the first
	Step      Compared             `json:"step_seconds"`
	Phases    map[string]*Compared `json:"phases"` // seconds of a step
	PeakBytes Compared             `json:"peak_bytes"`
	Memory    []MemoryPart         `json:"memory"` // memory of the leader by purpose, in the order of the plan
}

// A MemoryPart is the memory for one purpose, in bytes: what was reserved, and the most that was in use at a time. The
// latter is unknown for memory that the trainer does not reserve itself.
type MemoryPart struct {
	Name string `json:"name"`
	Compared
}

// Compared is a prediction and the measured value. Unknown numbers are NaN, in JSON null.
type Compared struct {
	Predicted train.Number `json:"predicted"`
	Actual    train.Number `json:"actual"`
}

// Off returns by which share the prediction is above the measured value; NaN if one of them is unknown.
func (c Compared) Off() float64 { return float64(c.Predicted/c.Actual) - 1 }

// timing compares the run with its plan.
func (s *session) timing(peak int64) Timing {
	t := Timing{
		Steps: s.phases.steps, Phases: map[string]*Compared{},
		PeakBytes: Compared{train.Number(math.NaN()), train.Number(peak)},
	}
	total := 0.0
	of := func(predicted, seconds float64) Compared {
		return Compared{train.Number(predicted), train.Number(seconds / float64(t.Steps))}
	}
	predicted := func(train.Phase) float64 { return math.NaN() }
	step := math.NaN()
	if s.Plan != nil {
		t.PeakBytes.Predicted = train.Number(s.Plan.Bytes)
		if p := s.plannedTime(); p != nil {
			step = p.Step
			predicted = func(x train.Phase) float64 { return p.Phases[x.String()] }
		}
	}
	for p := range train.Phases {
		spent := s.phases.spent[p].Seconds()
		total += spent
		c := of(predicted(p), spent)
		t.Phases[p.String()] = &c
	}
	t.Step = of(step, total)
	t.Memory = memoryParts(s.trainer)
	return t
}

// memoryParts returns the planned parts of a trainer's memory with the peak use of its arenas. Parts of the same name
// count as one.
func memoryParts(t *train.Trainer) (list []MemoryPart) {
	used := map[string]int64{}
	for _, a := range t.Arenas() {
		used[a.Name()] += int64(a.Peak())
	}
	for _, p := range t.Footprint().Parts() {
		i := slices.IndexFunc(list, func(m MemoryPart) bool { return m.Name == p.Name })
		if i < 0 {
			i = len(list)
			list = append(list, MemoryPart{p.Name, Compared{0, train.Number(math.NaN())}})
			if peak, ok := used[p.Name]; ok {
				list[i].Actual = train.Number(peak)
			}
		}
		list[i].Predicted += train.Number(p.Bytes)
	}
	return list
}

// plannedTime returns the predicted time of the run; nil if there is none.
func (s *session) plannedTime() *plan.Time {
	if s.Plan == nil {
		return nil
	}
	return s.Plan.Time
}

func (d runDir) timing() string { return filepath.Join(string(d), "timing.json") }

// announceTiming writes the predictions to the run's directory, for commands that watch the run.
func (s *session) announceTiming() {
	t := s.timing(0)
	t.PeakBytes.Actual = train.Number(math.NaN())
	s.writeTiming(t)
}

// writeTiming writes a comparison to the run's directory.
func (s *session) writeTiming(t Timing) {
	text, err := json.MarshalIndent(t, "", "  ")
	if err == nil {
		err = writeDurably(s.dir.timing(), append(text, '\n'))
	}
	if err != nil {
		s.Warn(s.dir.timing() + " is not written: " + err.Error())
	}
}
