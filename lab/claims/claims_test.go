package claims

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	_ "anneal/internal/torture"
)

// Every claim says what a reader needs, and numbers are used once.
func TestEveryClaimIsComplete(t *testing.T) {
	seen := map[int]bool{}
	for _, c := range All() {
		if c.Number < First || c.Number > Last || seen[c.Number] {
			t.Errorf("claim %d: the number is out of range or used twice", c.Number)
		}
		seen[c.Number] = true
		for name, text := range map[string]string{"Says": c.Says, "Source": c.Source, "How": c.How, "Rule": c.Rule} {
			if utf8.RuneCountInString(text) < 8 {
				t.Errorf("claim %d has no %s", c.Number, name)
			}
		}
		if !strings.HasSuffix(c.Says, ".") {
			t.Errorf("claim %d is no sentence: %s", c.Number, c.Says)
		}
		if c.Seconds <= 0 || c.Measure == nil || c.Judge == nil {
			t.Errorf("claim %d cannot be measured", c.Number)
		}
	}
}

// The claims that take about a second are measured; each rule finds the figures that it needs.
func TestCheapClaimsAreMeasured(t *testing.T) {
	for _, c := range All() {
		if c.Seconds > 1 {
			continue
		}
		figures, err := c.Measure(context.Background(), nil)
		if err == nil {
			err = check(figures)
		}
		if err != nil {
			t.Errorf("claim %d: %v", c.Number, err)
			continue
		}
		v, err := c.Verdict(figures)
		if err != nil {
			t.Error(err)
		}
		t.Logf("%2d %s: %s", c.Number, v, v.Why)
	}
}

// Figures of another version are refused, not judged.
func TestMissingFiguresAreAnError(t *testing.T) {
	_, err := find(t, 13).Verdict([]Figure{{"AdamW", 8, "B/parameter"}})
	var missing *MissingError
	if !errors.As(err, &missing) || missing.Claim != 13 || missing.Names[0] != "Lion" {
		t.Errorf("%v", err)
	}
}

func find(t *testing.T, number int) Claim {
	t.Helper()
	for _, c := range All() {
		if c.Number == number {
			return c
		}
	}
	t.Fatalf("there is no claim %d", number)
	return Claim{}
}
