package run

import (
	"strings"
	"testing"
)

// Commands that errors advise can be copied to a shell, whatever the name of the run.
func TestAdvisedCommandsQuoteTheRun(t *testing.T) {
	const dir = "my run"
	for _, text := range []string{
		existsError(dir).Error(), (&DivergedError{Step: 3, First: 3, Skips: 1, Dir: dir}).Error(),
		runDir(dir).remedyWithoutCheckpoint(),
	} {
		if !strings.Contains(text, " 'my run'") {
			t.Errorf("%s", text)
		}
	}
}
