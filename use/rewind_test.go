package use

import (
	"context"
	"testing"

	"anneal/run"
)

func resumeTo(t *testing.T, dir string) [2]string {
	t.Helper()
	r, err := run.Resume(context.Background(), run.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return [2]string{r.WeightsHash, r.OptimizerHash}
}
