package main

import (
	"encoding/json"
	"fmt"
	"os"

	"anneal/config"
	"anneal/run"
)

type configCmd struct {
	Schema configSchemaCmd `cmd:"" help:"Print the JSON Schema of a config, for editors."`
	Diff   configDiffCmd   `cmd:"" help:"Compare two configs, or those of two runs."`
}

type configSchemaCmd struct{}

func (configSchemaCmd) Help() string {
	return example("anneal config schema > anneal.schema.json") +
		"\n\nIn editors with the YAML language server, this first line of a config gives completion, documentation " +
		"and checks:\n\n    # yaml-language-server: $schema=anneal.schema.json"
}

func (configSchemaCmd) Run(s *session) error {
	if s.json {
		return s.emit(config.Schema())
	}
	text, err := json.MarshalIndent(config.Schema(), "", "  ")
	if err != nil {
		return err
	}
	s.printf("%s\n", text)
	return nil
}

type configDiffCmd struct {
	A string `arg:"" help:"A YAML config, or the directory of a run."`
	B string `arg:"" help:"Another config or run."`
}

func (configDiffCmd) Help() string {
	return example("anneal config diff runs/a runs/b", "anneal config diff examples/tiny.yaml runs/a")
}

// configDifference is a key with two values and the source of each.
type configDifference struct {
	Key     string `json:"key"`
	A       string `json:"a"`
	B       string `json:"b"`
	OriginA string `json:"a_origin"`
	OriginB string `json:"b_origin"`
}

func (c configDiffCmd) Run(s *session) error {
	a, err := loadConfig(c.A)
	if err != nil {
		return err
	}
	b, err := loadConfig(c.B)
	if err != nil {
		return err
	}
	list := []configDifference{}
	for _, d := range b.Differences(a) {
		list = append(list, configDifference{
			d.Key, d.Was, d.Now, a.Origin(d.Key).String(), b.Origin(d.Key).String(),
		})
	}
	if len(list) == 0 {
		s.printf("all values are the same\n")
	}
	key, value := 0, 0
	for _, d := range list {
		key, value = max(key, len(d.Key)), max(value, len(d.A), len(d.B))
	}
	value = min(value, 40)
	for _, d := range list {
		s.printf("%-*s  %-*s  %s\n%-*s  %-*s  %s\n", key, d.Key, value, d.A, d.OriginA, key, "", value, d.B, d.OriginB)
	}
	return s.emit(map[string]any{"a": c.A, "b": c.B, "differences": list})
}

// loadConfig reads a config file, or the config of a run.
func loadConfig(path string) (*config.Config, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return run.Config(path)
	} else if err != nil {
		return nil, &usageError{fmt.Sprintf("cannot read %s: %v", path, err),
			"name a YAML config, or the directory of a run"}
	}
	return config.Load(path, nil)
}
