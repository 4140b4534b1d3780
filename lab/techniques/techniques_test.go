package techniques

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/config"
	"anneal/internal/torture"
)

// docs/measured.md is what the committed figures give, and those are of the techniques that are compared today.
func TestThePageIsOfTheCommittedFigures(t *testing.T) {
	root, err := torture.Root()
	if err != nil {
		t.Fatal(err)
	}
	results, err := Committed()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, PageFile))
	if err != nil || !bytes.Equal(got, Page(results)) {
		t.Errorf("%s is not what lab/techniques/results.json gives (%v)\n  go generate ./lab/techniques", PageFile, err)
	}
	for _, m := range results.Groups {
		i := slices.IndexFunc(Groups(), func(g Group) bool { return g.Name == m.Group })
		if i < 0 || m.Date == "" || len(m.Rows) < 2 {
			t.Errorf("%q has %d rows of %q", m.Group, len(m.Rows), m.Date)
			continue
		}
		g := Groups()[i]
		for _, f := range m.Rows {
			same := func(r Row) bool { return slices.Equal(r.Set, f.Set) }
			if !slices.ContainsFunc(append(g.Rows, Row{Set: g.Base}), same) {
				t.Errorf("%s has figures of %q, %q, which is not compared today", m.Group, f.Name, f.Set)
			}
		}
	}
}

// Every technique is a valid run that differs from the one without it and from the others of its group.
func TestEveryTechniqueIsARunOfItsOwn(t *testing.T) {
	for _, g := range Groups() {
		seen := map[string]*config.Config{}
		for _, r := range append([]Row{{"none", nil}}, g.Rows...) {
			set := slices.DeleteFunc(slices.Concat(base, g.Base), func(s string) bool {
				key, _, _ := strings.Cut(s, "=")
				return slices.ContainsFunc(r.Set, func(o string) bool { return strings.HasPrefix(o, key+"=") })
			})
			cfg, err := config.Sources{Overrides: slices.Concat([]string{"data.path=none"}, set, r.Set)}.Load()
			if err != nil {
				t.Errorf("%s, %s: %v", g.Name, r.Name, err)
				continue
			}
			for name, other := range seen {
				if len(cfg.Differences(other)) == 0 {
					t.Errorf("%s: %q and %q are the same run", g.Name, name, r.Name)
				}
			}
			seen[r.Name] = cfg
		}
	}
}

const stored = `{"groups": [{"group": "init", "machine": {"cpu": "X1", "cores": 2, "tier": "avx2"},
	"date": "2026-01-02", "seconds": 60, "rate_seeds": 1, "rows": [
	{"name": "as configured", "rate": 0.004, "bits_per_byte": [2, 2.1, 2.2]},
	{"name": "He", "set": ["model.init=he"], "rate": 0.008, "at_edge": true, "bits_per_byte": [1.8, 1.9, 1.979]},
	{"name": "Xavier", "set": ["model.init=xavier"], "rate": 0.004, "bits_per_byte": [2.001, 2.1, null]}]}]}`

// Verdicts follow from stored figures alone.
func TestVerdictsFollowFromFigures(t *testing.T) {
	r, err := Read([]byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	page := string(Page(r))
	for _, want := range []string{
		"| He | `model.init=he` | 0.008, at the edge | 1.8930 | better by 9.9 ± 0.7 % |",
		"| Xavier | `model.init=xavier` | 0.004 | 2.0505 | 1 of 3 runs diverged; the others: no difference seen",
		"3 seeds each, rates chosen by 1. 2026-01-02, 1 minutes on 2 cores of X1, kernels avx2", "Not measured yet.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	ragged := strings.Replace(stored, "[2.001, 2.1, null]", "[2.001]", 1)
	if _, err := Read([]byte(ragged)); err == nil || !strings.Contains(err.Error(), "Xavier") {
		t.Errorf("a row with fewer runs than the first: %v", err)
	}
}

// A group that has figures is not measured again.
func TestWhatIsMeasuredIsNotMeasuredAgain(t *testing.T) {
	dir := t.TempDir()
	o := Options{
		Dir: filepath.Join(dir, "out"), Seeds: 3, OnStage: func(text string) { t.Error(text) },
		OnText: func(string, int64, int64) { t.Error("text is read") },
	}
	if _, err := Run(t.Context(), o); err != nil { // of no groups
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, ResultsFile), []byte(stored), 0o666); err != nil {
		t.Fatal(err)
	}
	o.Groups = []Group{{Name: "init", Title: "Initialisation", Rows: []Row{
		{"He", []string{"model.init=he"}}, {"Xavier", []string{"model.init=xavier"}},
	}}}
	r, err := Run(t.Context(), o)
	if err != nil || r.Find("init") == nil {
		t.Errorf("%+v, %v", r, err)
	}
	o.Seeds = 5
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "another study") {
		t.Errorf("with other seeds: %v", err)
	}
}
