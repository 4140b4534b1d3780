package tasks

import (
	"encoding/json"
	"math"
	"testing"
)

// A result that was written can be read again, with figures that are not known.
func TestAResultWithUnknownFiguresRoundTrips(t *testing.T) {
	text, err := json.Marshal(MetricResult{Name: "acc", Value: 0.25, Stderr: Number(math.NaN())})
	if err != nil {
		t.Fatal(err)
	}
	var back MetricResult
	if err := json.Unmarshal(text, &back); err != nil || back.Value != 0.25 || !math.IsNaN(float64(back.Stderr)) {
		t.Errorf("%s is read as %+v: %v", text, back, err)
	}
}
