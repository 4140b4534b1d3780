package claims

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"anneal/internal/torture"
)

// docs/claims.md is what the committed figures give.
func TestThePageIsOfTheCommittedFigures(t *testing.T) {
	root, err := torture.Root()
	if err != nil {
		t.Fatal(err)
	}
	results, err := Committed()
	if err != nil {
		t.Fatal(err)
	}
	want, err := Page(results)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, PageFile))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what lab/claims/results.json gives (%v)\n  go generate ./lab/claims", PageFile, err)
	}
	for _, c := range results.Claims {
		if c.Date == "" || results.Machine.CPU == "" || find(t, c.Claim).Number != c.Claim {
			t.Errorf("claim %d was measured nowhere", c.Claim)
		}
	}
}

// What is measured is stored and not measured again; a claim that fails keeps nothing back.
func TestRunResumes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "claims")
	measured := []int{}
	o := Options{Dir: dir, Claims: []Claim{find(t, 13)}, OnClaim: func(c Claim, _, _ int) {
		measured = append(measured, c.Number)
	}}
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	broken := find(t, 14)
	broken.Measure = func(context.Context, *Env) ([]Figure, error) { return nil, os.ErrInvalid }
	o.Claims = []Claim{find(t, 13), broken, find(t, 15)}
	r, err := Run(context.Background(), o)
	if err == nil || r == nil {
		t.Fatalf("a claim that failed is no error: %v", err)
	}
	again, err := os.ReadFile(filepath.Join(dir, ResultsFile))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := Read(again)
	if err != nil || len(stored.Claims) != 2 || stored.Find(15) == nil || stored.Find(14) != nil {
		t.Errorf("stored: %s (%v)", again, err)
	}
	if len(measured) != 3 {
		t.Errorf("measured %v, want 13 once, and 14, 15", measured)
	}
	older := bytes.Replace(again, []byte(`"AdamW"`), []byte(`"Adam"`), 1)
	if err := os.WriteFile(filepath.Join(dir, ResultsFile), older, 0o666); err != nil {
		t.Fatal(err)
	}
	if r, err := Run(context.Background(), Options{Dir: dir, Claims: []Claim{find(t, 13)},
		OnClaim: o.OnClaim}); err != nil ||
		len(measured) != 4 || r.Find(13).Figures[0].Name != "AdamW" {
		t.Errorf("figures of another version are not measured again: %v, %v", measured, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, Options{Dir: dir, Claims: []Claim{find(t, 12)},
		OnClaim: o.OnClaim}); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

// Claims that need a directory for data, runs or a study are measured in one.
func TestClaimsAreMeasuredInADirectory(t *testing.T) {
	r, err := Run(context.Background(), Options{
		Dir: filepath.Join(t.TempDir(), "claims"), Claims: []Claim{find(t, 57), find(t, 59)},
		OnClaim: func(Claim, int, int) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Judge(r)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	if rows[0].Ruling != HoldsWhen || rows[1].Ruling != Holds {
		t.Errorf("57 %s (%s), 59 %s (%s)", rows[0].Verdict, rows[0].Why, rows[1].Verdict, rows[1].Why)
	}
}
