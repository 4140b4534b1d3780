package main

import (
	"strings"
	"testing"
)

// An archive contains the environment variables that affect how anneal runs, and none that only have similar names.
func TestTheArchiveHasNoSecretOfTheEnvironment(t *testing.T) {
	for _, name := range []string{"GOOGLE_CLIENT_SECRET", "GOPROXY", "ANNEAL_API_KEY", "ANNEAL_PASSWORD", "OMP_PASS"} {
		t.Setenv(name, "hush")
	}
	t.Setenv("GOTRACEBACK", "all")
	text := string(describeMachine())
	if strings.Contains(text, "hush") || !strings.Contains(text, "GOTRACEBACK=all") {
		t.Errorf("machine.json: %s", text)
	}
}
