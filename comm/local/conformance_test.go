package local_test

import (
	"testing"
	"time"

	"anneal/comm"
	"anneal/comm/commtest"
	"anneal/comm/local"
)

func TestConformance(t *testing.T) {
	commtest.Run(t, func(n int, timeout time.Duration) []comm.Comm {
		return local.New(n, local.Options{Timeout: timeout})
	})
}
