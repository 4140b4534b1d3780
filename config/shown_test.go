package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestWhatIsShownHoldsNoSecret(t *testing.T) {
	load := func(secret string) *Config {
		t.Helper()
		c, err := Sources{Overrides: []string{
			"data.path=d", "log.sinks=trackio", "log.webhook=https://hooks.example.com/" + secret,
			"log.trackio_url=https://me:" + secret + "@example.com/base?write_token=" + secret + "#" + secret,
		}}.Load()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	was, now := load("hush1"), load("hush2")
	text := string(now.Shown().YAML()) + fmt.Sprint(now.Differences(was))
	if strings.Contains(text, "hush") {
		t.Errorf("a secret is in %s", text)
	}
	if !strings.Contains(text, "https://example.com/base") {
		t.Error("the rest of the address is not shown")
	}
	if len(now.Differences(was)) != 2 || now.Log.Webhook != "https://hooks.example.com/hush2" {
		t.Error("secrets are compared, and remain where they are needed")
	}
}

// A text that is empty in one of two configurations shows as such.
func TestDifferencesShowEmptyTexts(t *testing.T) {
	was, now := Default(), Default()
	if err := now.Override("data.skip=3:5"); err != nil {
		t.Fatal(err)
	}
	for want, list := range map[string][]Difference{
		`[data.skip: "" → 3:5]`: now.Differences(was), `[data.skip: 3:5 → ""]`: was.Differences(now),
	} {
		if got := fmt.Sprint(list); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
