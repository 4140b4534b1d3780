package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled is the schema as a validator of its own reads it, with its formats and keywords checked.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("anneal.json", parsed); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("anneal.json")
}

func parsed(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(v)
	if err == nil {
		v, err = jsonschema.UnmarshalJSON(bytes.NewReader(again))
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What Load takes the schema takes: our examples, the recipes, and the resolved form of each.
func TestSchemaTakesOurConfigs(t *testing.T) {
	s := compiled(t)
	check := func(name string, text []byte) {
		if err := s.Validate(parsed(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		check(f, text)
		cfg, err := Load(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		check(f+", resolved", cfg.YAML())
	}
	for _, name := range Recipes() {
		text, err := RecipeText(name)
		if err != nil {
			t.Fatal(err)
		}
		check(name, []byte(text))
	}
	for _, text := range []string{
		"train: {steps: 2K, minutes: 1h30m, batch_tokens: 64Ki}\nschedule: {warmup: 5%}\n",
		"model: {positions: [rope, none]}\nlog: {sinks: [tensorboard, prometheus]}\ndata:\n",
	} {
		check(text, []byte(text))
	}
}

func TestSchemaRefusesWhatLoadRefuses(t *testing.T) {
	s := compiled(t)
	for _, text := range []string{
		"model: {layerz: 2}", "modle: {layers: 2}", "precision: fp7", "model: {layers: many}", "model: {layers: 1.5}",
		"model: {tie_embeddings: 3}", "train: {minutes: [1]}", "model: 7", "optimizer: {lr: fast}",
	} {
		if s.Validate(parsed(t, []byte(text))) == nil {
			t.Errorf("the schema takes %s", text)
		}
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path, nil); err == nil {
			t.Errorf("Load takes %s", text)
		}
	}
}

// Every key is described, with the default that Default has.
func TestSchemaDescribesEveryKey(t *testing.T) {
	for _, k := range Keys() {
		at := Schema()
		for name := range strings.SplitSeq(k.Name, ".") {
			next, _ := at["properties"].(map[string]any)[name].(map[string]any)
			if next == nil {
				t.Fatalf("%s is not in the schema", k.Name)
			}
			at = next
		}
		if _, has := at["default"]; has == (k.Rule != "") || !strings.HasPrefix(at["description"].(string), k.Doc) {
			t.Errorf("%s: %v", k.Name, at)
		}
	}
}
