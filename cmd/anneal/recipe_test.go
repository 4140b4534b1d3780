package main

import (
	"encoding/json"
	"strings"
	"testing"

	"anneal/config"
)

// The dry run of a recipe needs no data and no memory. It prints every hyper-parameter with unit and source, the
// unknown ones, and what training would need, as text and as JSON.
func TestDryRunOfARecipeIsATable(t *testing.T) {
	code, out, errs := anneal("train", "--recipe", "llama2-70b", "--dry-run")
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, want := range []string{
		"arXiv 2307.09288", "Not disclosed", "model.layers  80 blocks", "optimizer.lr  0.00015  Table 1",
		"schedule.warmup  2000 steps  §2.2",
		"train.batch_tokens  4194304 tokens  Table 1: 4M tokens", "train.clip  1", "optimizer.weight_decay  0.1",
		"68,976,648,192 parameters",
		"1,999,999,336,448 tokens", "FLOPs in all", "optimizer state",
	} {
		if !strings.Contains(squeezed(out), squeezed(want)) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	code, out, _ = anneal("train", "--recipe", "llama2-70b", "--dry-run", "model.layers=2", "--json")
	var got struct {
		Recipe     string           `json:"recipe"`
		Settings   []config.Setting `json:"settings"`
		Parameters int64            `json:"parameters"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	if got.Recipe != "llama2-70b" ||
		got.Settings[1] != (config.Setting{Key: "model.layers", Value: "2", Unit: "blocks", Source: "command line"}) ||
		got.Parameters >= 3e9 {
		t.Errorf("%+v", got)
	}
}

func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }

func TestRecipesAreListedAndShown(t *testing.T) {
	code, out, _ := anneal("recipe", "list")
	if lines := strings.Count(out, "\n"); code != exitOK || lines != len(config.Recipes()) {
		t.Errorf("exit %d, %d lines:\n%s", code, lines, out)
	}
	if code, out, _ = anneal("recipe", "show", "llama2-7b"); code != exitOK || !strings.Contains(out, "ffn: 11008 ") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	for _, c := range [][]string{{"recipe", "show", "lama2-7b"}, {"train", "--recipe", "lama2-7b", "--dry-run"}} {
		if code, _, errs := anneal(c...); code != exitUsage || !strings.Contains(errs, "try llama2-7b") {
			t.Errorf("%v: exit %d, %s", c, code, errs)
		}
	}
	if code, _, errs := anneal("train", "--dry-run"); code != exitUsage ||
		!strings.Contains(errs, "anneal recipe list") {
		t.Errorf("no config: exit %d, %s", code, errs)
	}
	if code, _, errs := anneal("train", "--recipe", "llama2-7b", "--out", t.TempDir()); code != exitUsage ||
		!strings.Contains(errs, "data.path is not set") {
		t.Errorf("no data: exit %d, %s", code, errs)
	}
}
