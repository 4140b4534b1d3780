package config

import (
	"strconv"
	"strings"
)

// Schema returns the JSON Schema (draft 2020-12) of a configuration file, for editors and other tools: every key with
// its meaning, its default and the names that it accepts. It is as strict about names of keys as Load; only Validate
// checks combinations of values.
func Schema() map[string]any {
	root := section()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "anneal run configuration"
	for _, k := range allKeys {
		at := root
		path := strings.Split(k.Name, ".")
		for _, name := range path[:len(path)-1] {
			inside := at["properties"].(map[string]any)
			if inside[name] == nil {
				inside[name] = section()
			}
			at = inside[name].(map[string]any)
		}
		at["properties"].(map[string]any)[path[len(path)-1]] = k.schema()
	}
	return root
}

// section returns the schema of a section; schemas of its keys are added to it. An empty section is null in YAML.
func section() map[string]any {
	return map[string]any{
		"type": []string{"object", "null"}, "additionalProperties": false, "properties": map[string]any{},
	}
}

// schema describes the value of one key. A number may be given as text, such as 2K, 64Ki or 30%.
func (k Key) schema() map[string]any {
	doc := k.Doc
	if k.Unit != "" {
		doc += "\nUnit: " + k.Unit + "."
	}
	if k.Rule != "" {
		doc += "\nIf left out: " + k.Rule + "."
	}
	s := map[string]any{"description": doc}
	switch {
	case k.Values != nil:
		s["enum"] = k.Values
	case k.list:
		text := map[string]any{"type": []string{"string", "number"}}
		s["anyOf"] = []any{text, map[string]any{"type": "array", "items": text}}
	case k.Type == "true or false":
		s["type"] = "boolean"
	case k.Type == "integer", k.Type == "non-negative integer":
		s["type"], s["pattern"] = []string{"integer", "string"}, `^[-+0-9]`
	case k.amount:
		s["type"], s["pattern"] = []string{"integer", "string"}, `^[0-9]`
	case k.Type == "number", k.Type == durationType:
		s["type"], s["pattern"] = []string{"number", "string"}, `^[-+.0-9]`
	default:
		s["type"] = []string{"string", "number"}
	}
	if k.Rule == "" {
		s["default"] = k.defaultValue()
	}
	return s
}

// defaultValue returns the default as a JSON value.
func (k Key) defaultValue() any {
	switch {
	case k.Default == "true", k.Default == "false":
		return k.Default == "true"
	case k.list, k.Values != nil, k.Type == "text":
		return k.Default
	}
	if f, err := strconv.ParseFloat(k.Default, 64); err == nil {
		return f
	}
	return k.Default
}
