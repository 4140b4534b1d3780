package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// Claims are measured once: the second call reads the results, and shows one claim in full.
func TestLabClaims(t *testing.T) {
	out := filepath.Join(t.TempDir(), "claims")
	code, text, errs := anneal("lab", "claims", "--only", "13,15", "--out", out)
	if code != exitOK || !strings.Contains(errs, "claim 13 (1 of 2") {
		t.Fatalf("exit %d\n%s%s", code, text, errs)
	}
	for _, want := range []string{"rule", "figures", "does not hold", "arXiv 2302.06675", "B/parameter"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not shown:\n%s", want, text)
		}
	}
	code, text, errs = anneal("lab", "claims", "--only", "13", "--out", out, "--json")
	var v struct {
		Claims []struct {
			Claim   int
			Verdict string
			Figures []struct{ Value float64 }
		}
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil || code != exitOK || strings.Contains(errs, "of 1") {
		t.Fatalf("exit %d, %v\n%s%s", code, err, text, errs)
	}
	if len(v.Claims) != 1 || v.Claims[0].Claim != 13 || v.Claims[0].Verdict != "does not hold" ||
		v.Claims[0].Figures[0].Value != 8 {
		t.Errorf("%+v", v)
	}
}

func TestLabClaimsRefusesUnknownNumbers(t *testing.T) {
	for _, n := range []string{"0", "61", "-1", "13,99"} {
		code, _, errs := anneal("lab", "claims", "--only="+n, "--out", filepath.Join(t.TempDir(), "claims"))
		if code != exitUsage || !strings.Contains(errs, "from 1 to 60") {
			t.Errorf("--only=%s: exit %d: %s", n, code, errs)
		}
	}
}
