package config

import (
	"encoding/json"
	"reflect"
)

// UnmarshalJSON reads the configuration that a run saved. Keys that did not exist then have their default or derived
// values.
func (c *Config) UnmarshalJSON(text []byte) error {
	type plain Config
	saved := plain(*Default())
	var has map[string]any
	if err := json.Unmarshal(text, &saved); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &has); err != nil {
		return err
	}
	*c = Config(saved)
	for _, k := range allKeys {
		if k.savedIn(has) {
			c.origins[k.Name] = Origin{File: "state.json"}
		}
	}
	c.Resolve()
	return nil
}

// savedIn reports whether a configuration as JSON has the key.
func (k Key) savedIn(object map[string]any) bool {
	t := reflect.TypeFor[Config]()
	for i, at := range k.index {
		f := t.Field(at)
		value, has := object[f.Name]
		if !has || i == len(k.index)-1 {
			return has
		}
		object, _ = value.(map[string]any)
		t = f.Type
	}
	return false
}
