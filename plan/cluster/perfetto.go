package cluster

import (
	"encoding/json"
	"io"
)

// Perfetto writes the timeline of a step in the trace format that Perfetto and Chrome open, a row for each stage, times
// in microseconds.
func (s *Step) Perfetto(w io.Writer) error {
	type event struct {
		Name  string  `json:"name"`
		Phase string  `json:"ph"`
		Start float64 `json:"ts"`
		Takes float64 `json:"dur"`
		Group int     `json:"pid"`
		Row   int     `json:"tid"`
	}
	events := []event{}
	for stage, list := range s.Lists {
		for k, i := range list {
			if at := s.Timeline.Spans[stage][k]; at.End > at.Start {
				events = append(events, event{i.String(), "X", at.Start * 1e6, (at.End - at.Start) * 1e6, 0, stage})
			}
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}
