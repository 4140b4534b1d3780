package config

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/dataset"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const mixed = "data:\n  mix: [web=/d/web, code=/d/code, /d/best]\ntrain: {steps: 1000, batch_tokens: 16384}\n"

// A step reads 64 rows of 256 tokens. Changes hold from the sample of their step on; the budget of unimax is what is
// read while it holds.
func TestWeightsBecomeAMix(t *testing.T) {
	rows := []uint64{1000, 10_000, 100_000} // web, code, best
	third := []float64{1. / 3, 1. / 3, 1. / 3}
	for _, c := range []struct {
		weights string
		want    dataset.Mix
	}{
		{"natural", dataset.Mix{{Weights: []float64{1. / 111, 10. / 111, 100. / 111}}}},
		{"temperature:1e9", dataset.Mix{{Weights: third}}},
		{"unimax:4", dataset.Mix{{Weights: []float64{4. / 64, 30. / 64, 30. / 64}}}},
		{"unimax:4, web=1 from 10%", dataset.Mix{{Weights: []float64{4. / 6.4, 1.2 / 6.4, 1.2 / 6.4}},
			{From: 6400, Weights: []float64{1, 0, 0}}}},
		{"web=2 best=6", dataset.Mix{{Weights: []float64{.25, 0, .75}}}},
		{"web=1,code=1 from 500,  best=1 from 80% to 90%, web=1 from 15.2M tokens", dataset.Mix{
			{Weights: []float64{1, 0, 0}}, {From: 32_000, Weights: []float64{0, 1, 0}},
			{From: 51_200, Weights: []float64{0, 1, 0}, To: []float64{0, 0, 1}},
			{From: 57_600, Weights: []float64{0, 0, 1}},
			{From: 64 * 928, Weights: []float64{1, 0, 0}},
		}},
	} {
		if c.weights == "unimax:4, web=1 from 10%" { // a budget of 6,400 rows: 2,133 each, so that no cap holds
			c.want[0].Weights = third
		}
		cfg, err := parse([]byte(mixed), "run.yaml", []string{"data.weights=" + c.weights})
		if err != nil {
			t.Fatalf("%s: %v", c.weights, err)
		}
		got, err := cfg.Mix(rows)
		if d := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-6)); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", c.weights, err, d)
		}
		again, err := parse(cfg.YAML(), "again.yaml", nil)
		if err != nil || again.Differences(cfg) != nil {
			t.Errorf("%s: written and read again: %v, %+v, want %+v", c.weights, err, again.Data, cfg.Data)
		}
	}
}

func TestSourcesHaveNamesAndAbsolutePaths(t *testing.T) {
	c, err := parse([]byte("data:\n  mix: [web=w, data/code]\n  weights: [web=1 code=2, code=1 from 50%]\n"),
		"run.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Sources()
	if err != nil || len(list) != 2 || list[0].Name != "web" || list[1].Name != "code" ||
		!filepath.IsAbs(list[0].Path) || !strings.HasSuffix(list[1].Path, filepath.Join("data", "code")) {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := ParseSources("a=b=c"); err != nil || list[0] != (Source{"a", "b=c"}) {
		t.Errorf("a=b=c: %v, %v", list, err)
	}
}

// On the command line the later of data.path and data.mix takes the place of what the file has.
func TestPathAndMixTakeEachOthersPlace(t *testing.T) {
	if c, err := parse([]byte(mixed+"optimizer: {lr: 1e-3}\n"), "run.yaml", []string{"data.path=/d/web"}); err != nil ||
		c.Data.Mix.Given() || c.Data.Path != "/d/web" {
		t.Errorf("%v", err)
	}
	if c, err := parse([]byte(minimal), "run.yaml",
		[]string{"data.mix=/d/web,/d/code", "data.weights=unimax:2"}); err != nil || c.Data.Path != "" {
		t.Errorf("%v", err)
	}
}

func TestMixProblems(t *testing.T) {
	for want, o := range map[string][]string{
		"both set":                    {"data.path=/d", "data.mix=/a,/b"},
		"two sources have":            {"data.mix=a=/d/x,a=/d/y"},
		"is not NAME=DIR":             {"data.mix=a b=/d/x"},
		"is not NAME=DIR ":            {"data.mix=/a,"},
		"257 sources":                 {"data.mix=" + strings.Repeat("NAME=/d,", 256) + "/e"},
		"is it code?":                 {"data.weights=web=1 cod=1"},
		"code has two":                {"data.weights=code=1 code=2"},
		"no source a weight":          {"data.weights=code=0"},
		`"most" is not natural`:       {"data.weights=most"},
		"natural:3":                   {"data.weights=natural:3"},
		"unimax needs a number":       {"data.weights=unimax"},
		"such as temperature:4":       {"data.weights=temperature:0"},
		`"code=-1" is not`:            {"data.weights=code=-1"},
		`"code=NaN" is not`:           {"data.weights=code=NaN"},
		"each later entry needs one":  {"data.weights=code=1 from 10%"},
		"each later entry needs one ": {"data.weights=code=1, web=1"},
		"beyond the end":              {"data.weights=code=1, web=1 from 1000"},
		"beyond the end ":             {"data.weights=code=1, web=1 from 50% to 101%"},
		"before it begins":            {"data.weights=code=1, web=1 from 50% to 40%"},
		"before the change before":    {"data.weights=code=1, web=1 from 50% to 60%, code=1 from 55%"},
		"before the change before it": {"data.weights=code=1, web=1 from 50%, code=1 from 50%"},
		"is not a number of":          {"data.weights=code=1, web=1 from late"},
		"no effect without":           {"data.path=/d", "data.weights=natural:1"},
	} {
		for i := 0; len(o) == 1 && strings.Contains(o[0], "NAME"); i++ {
			o[0] = strings.Replace(o[0], "NAME", "s"+string(rune('a'+i/26))+string(rune('a'+i%26)), 1)
		}
		p := problemsOf(t, mixed, o...)
		if !slices.ContainsFunc(p, func(p Problem) bool {
			return strings.Contains(p.Message, strings.TrimSpace(want)) && p.Try != "" && p.At != ""
		}) {
			t.Errorf("%v: %+v, want %q", o, p, want)
		}
	}
}

// A configuration that was saved before keys existed has them at their defaults; what it has stays, whatever its
// family says.
func TestOldConfigurationsHaveDefaults(t *testing.T) {
	for _, o := range [][]string{
		nil, {"optimizer.name=muon"}, {"optimizer.name=sophia"}, {"optimizer.name=adafactor"}, {"schedule.name=wsds"},
		{"precision=fp16"},
		{"model.family=gpt2"}, {"model.family=anneal"},
		{"model.family=anneal", "model.activation=swiglu", "model.x0_skip=false", "model.attention=full"},
		{"model.mup=true"},
	} {
		c, err := parse([]byte(minimal), "run.yaml", o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(c)
		var saved map[string]any
		if err != nil || json.Unmarshal(text, &saved) != nil {
			t.Fatal(err)
		}
		delete(saved, "Memory")
		delete(saved, "Average")
		for section, keys := range map[string][]string{
			"Data": {"Packing", "Order", "Mix", "Weights", "Skip"}, "Model": {"RopeLayout", "Init", "MuPInputScale"},
			"Train": {"BatchRampLR"}, "Optimizer": {"NewtonSchulz", "Groups"},
		} {
			for _, k := range keys {
				delete(saved[section].(map[string]any), k)
			}
		}
		text, _ = json.Marshal(saved)
		var old Config
		if err := json.Unmarshal(text, &old); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(*c, old, values); d != "" {
			t.Errorf("%v:\n%s", o, d)
		}
	}
}
