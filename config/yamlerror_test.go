package config

import (
	"strings"
	"testing"
)

// What is no YAML is explained by its cause: where, and what to do.
func TestFilesThatAreNoYAML(t *testing.T) {
	for _, c := range []struct{ text, says, at, try string }{
		{"model:\n\tlayers: 2\n", "line 2 is indented with a tab", "run.yaml:2:1", "two spaces"},
		{"model:\n  layers: 2\n  \tdim: 3\n", "line 3 is indented with a tab", "run.yaml:3:3", "two spaces"},
		{"model:\n  layers: 2\n  layers: 3\n", "layers appears twice, first on line 2", "run.yaml:3:3", "removing one"},
		{"model:\n  dim: 64\ntrain: {steps: 3}\nmodel:\n  layers: 2\n", "model appears twice, first on line 1",
			"run.yaml:4:1", "a section appears once"},
		{"model:\n  layers: 2\n dim: 3\n", "not YAML", "run.yaml:3:2", "the same indentation"},
		{"model\n  layers: 2\n", "not YAML", "run.yaml:1:1", "colon"},
		{"model: {layers: 2\n", "not YAML", "run.yaml:1:8", "}"},
		{"model:\n  - layers: 2\n", "model holds no keys", "run.yaml:2:3", "key: value"},
	} {
		p := problemsOf(t, c.text)
		if !strings.Contains(p[0].Message, c.says) || p[0].At != c.at || !strings.Contains(p[0].Try, c.try) {
			t.Errorf("%q: %+v", c.text, p)
		}
	}
	if _, err := parse([]byte("data:\t{path: /d}\nmodel: # a\ttab\n  layers:\t2\n"), "run.yaml", nil); err != nil {
		t.Errorf("tabs that YAML allows: %v", err)
	}
}

// A name without its section, of another section or by another word leads to the key.
func TestUnknownKeysLeadToTheirNearest(t *testing.T) {
	for name, want := range map[string]string{
		"lr": "optimizer.lr", "train.lr": "optimizer.lr", "name": "optimizer.name or schedule.name",
		"optimizer.learning_rate": "optimizer.lr", "warmpu": "schedule.warmup", "decay": "optimizer.weight_decay",
		"modle.dim": "model.dim", "modle": "model", "zzz": "anneal explain",
		"batch_size": "train.micro_batch", "training.max-steps": "train.steps", "model.d_model": "model.dim",
	} {
		if p := unknownKey(name, ""); !strings.Contains(p.Try, want) {
			t.Errorf("%s: try %s, want %s", name, p.Try, want)
		}
	}
	if found := Find("lr_ratio"); len(found) != 5 || Find("r") != nil || Find("") != nil {
		t.Errorf("keys called lr_ratio: %v; r: %v", found, Find("r"))
	}
}

// The names of other programs are no keys, each leads to one suggestion, and the keys that are suggested exist.
func TestNamesOfOtherProgramsLeadToKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range elsewhere {
		key := strings.Trim(strings.Fields(x.try)[0], ",;:")
		if _, is := keyIndex[key]; !is && !isSection(key) && !strings.HasPrefix(key, "`") {
			t.Errorf("%q suggests %s, which is no key", x.names, key)
		}
		for name := range strings.FieldsSeq(x.names) {
			if seen[name] || Find(name) != nil {
				t.Errorf("%s is a key, or in two lines", name)
			}
			seen[name] = true
		}
	}
}
