package main

import (
	"strings"
	"testing"
)

// Of the environment an archive has what decides how anneal runs, and nothing that only has a similar name.
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
