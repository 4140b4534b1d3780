package prepare

import (
	"strings"
	"testing"
)

func TestBuildDataNeedsATokenizer(t *testing.T) {
	_, _, err := BuildData(t.Context(), Text{Paths: []string{"data.go"}}, DataOptions{Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "TrainTokenizer") {
		t.Errorf("%v", err)
	}
}
