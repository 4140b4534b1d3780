package cluster

import (
	"encoding/json"
	"fmt"
	"io"
)

// A traceEvent is an event of the trace format: complete ("X") or metadata ("M"), times in microseconds.
type traceEvent struct {
	Name  string            `json:"name"`
	Phase string            `json:"ph"`
	Start float64           `json:"ts"`
	Takes float64           `json:"dur"`
	Group int               `json:"pid"`
	Row   int               `json:"tid"`
	Args  map[string]string `json:"args,omitempty"`
}

// Perfetto writes the timeline of a step in the trace format that Perfetto and Chrome open. There is a named row for
// each stage, because its ranks all do the same.
func (s *Step) Perfetto(w io.Writer) error {
	events := []traceEvent{{Name: "process_name", Phase: "M", Args: map[string]string{"name": "a step"}}}
	for stage, list := range s.Lists {
		events = append(events, traceEvent{Name: "thread_name", Phase: "M", Row: stage,
			Args: map[string]string{"name": fmt.Sprint("stage ", stage)}})
		for k, i := range list {
			if at := s.Timeline.Spans[stage][k]; at.End > at.Start {
				events = append(events, traceEvent{Name: i.String(), Phase: "X", Start: at.Start * 1e6,
					Takes: (at.End - at.Start) * 1e6, Row: stage})
			}
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}
