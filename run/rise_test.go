package run

import (
	"strings"
	"testing"

	"anneal/train"
	"anneal/train/traintest"
)

// A layer whose gradient has risen is told of, with what to do.
func TestARiseIsToldOf(t *testing.T) {
	var told []string
	s := session{cfg: traintest.Config("data"), Options: Options{Warn: func(text string) { told = append(told, text) }}}
	s.tellRise(train.Event{})
	s.tellRise(train.Event{Rise: &train.Rise{Layer: 1, From: 0.1, To: 0.5}})
	if len(told) != 1 || !strings.Contains(told[0], "layer 1") || !strings.Contains(told[0], "from 0.1 to 0.5") ||
		!strings.Contains(told[0], "optimizer.lr") {
		t.Errorf("the run says %q", told)
	}
}
