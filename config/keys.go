package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"anneal/internal/units"
)

// Key describes one config key.
type Key struct {
	Name    string   `json:"key"`
	Type    string   `json:"type"`
	Default string   `json:"default"`
	Unit    string   `json:"unit,omitempty"`
	Values  []string `json:"values,omitempty"` // for names: all known ones
	Doc     string   `json:"doc"`
	Rule    string   `json:"rule,omitempty"` // how the value is derived if it is not given
	index   []int
	amount  bool   // steps that may be given as a percentage of the run or in tokens
	list    bool   // a comma-separated text that a file may give as a list
	try     string // suggestion for a text that is not a value; "" suggests the default or the rule
}

var (
	allKeys  = buildKeys()
	keyIndex = func() map[string]int {
		m := make(map[string]int, len(allKeys))
		for i, k := range allKeys {
			m[k.Name] = i
		}
		return m
	}()
)

// Keys returns every key in the order of the file.
func Keys() []Key { return append([]Key(nil), allKeys...) }

// Find returns the keys whose full name or last parts are name: lr finds optimizer.lr. If keys of several depths
// match, it returns only the least deep: not parallel.outer.lr.
func Find(name string) (keys []string) {
	least := math.MaxInt
	for _, k := range allKeys {
		depth := strings.Count(k.Name, ".")
		if k.Name != name && (name == "" || !strings.HasSuffix(k.Name, "."+name)) || depth > least {
			continue
		}
		if depth < least {
			keys, least = nil, depth
		}
		keys = append(keys, k.Name)
	}
	return keys
}

// Explain describes a key, or returns an error that names the nearest key.
func Explain(name string) (Key, error) {
	if i, ok := keyIndex[name]; ok {
		return allKeys[i], nil
	}
	return Key{}, &Error{[]Problem{unknownKey(name, "")}}
}

func buildKeys() []Key {
	var keys []Key
	def := reflect.ValueOf(Default()).Elem()
	var walk func(v reflect.Value, prefix string, index []int)
	walk = func(v reflect.Value, prefix string, index []int) {
		for i := range v.NumField() {
			tag, ok := v.Type().Field(i).Tag.Lookup("yaml")
			if !ok || tag == "-" {
				continue
			}
			name, at := prefix+tag, append(append([]int(nil), index...), i)
			if v.Field(i).Kind() == reflect.Struct && !isText(v.Field(i)) {
				walk(v.Field(i), name+".", at)
				continue
			}
			k := notes[name]
			if key, ok := strings.CutPrefix(name, "optimizer."); ok && k.Rule == "" {
				k.Rule = optimizerRule(key)
			}
			if k.Rule == "" {
				k.Rule = familyRule(name, format(v.Field(i)))
			}
			k.Name, k.index, k.Type = name, at, typeName(v.Field(i))
			k.Default = format(v.Field(i))
			if k.amount {
				k.Type = "integer, percentage or amount of tokens"
			}
			if k.list {
				k.Type = listType
			}
			if k.Unit == "minutes" {
				k.Type = durationType
			}
			if k.Rule != "" {
				k.Default = "derived"
			}
			keys = append(keys, k)
		}
	}
	walk(def, "", nil)
	return keys
}

// durationType is the type of keys in minutes, which may be given in other units.
const durationType = "number of minutes, or duration such as 90s or 1h30m"

// listType is the type of keys that a file may give as a list.
const listType = "text or a list of texts"

// isText reports whether the type of an addressable field has its own text form.
func isText(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	return ok
}

func typeName(v reflect.Value) string {
	if isText(v) {
		return "text"
	}
	switch v.Kind() {
	case reflect.Int:
		return "integer"
	case reflect.Uint64:
		return "non-negative integer"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	}
	panic(fmt.Sprintf("config: a field of kind %v has no place in a config file", v.Kind()))
}

// format writes a value in the form of the config file.
func format(v reflect.Value) string {
	if t, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := t.MarshalText()
		if err != nil {
			panic("config: " + err.Error()) // a value that was read can be written
		}
		return string(text)
	}
	switch v.Kind() {
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.String:
		return v.String()
	}
	return fmt.Sprint(v.Interface())
}

// set parses text into the field of key; the error says what was expected.
func (c *Config) set(k Key, text string, from Origin) error {
	v := reflect.ValueOf(c).Elem().FieldByIndex(k.index)
	if !utf8.ValidString(text) { // YAML cannot represent it
		return fmt.Errorf("%s = %q is not UTF-8 text", k.Name, text)
	}
	wrong := fmt.Errorf("%s = %q is not %s", k.Name, text, article(k.Type))
	digits := strings.ReplaceAll(text, "_", "")
	if from.Rule == "" {
		delete(c.amounts, k.Name) // it replaces an earlier text
	}
	if k.amount {
		a, err := parseAmount(text)
		if err != nil {
			return fmt.Errorf("%s = %w", k.Name, err)
		}
		if a.unit == "steps" {
			digits = strconv.FormatInt(int64(a.value), 10)
		} else {
			if c.amounts == nil {
				c.amounts = map[string]amount{}
			}
			c.amounts[k.Name] = a
			digits = "0"
		}
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := t.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
	}
	switch v.Kind() {
	case reflect.Int:
		n, err := units.Int(digits)
		if err != nil {
			return wrong
		}
		if number, minutes := strings.CutSuffix(text, "m"); minutes && k.Unit == "steps" {
			return fmt.Errorf("%s = %q may be minutes or millions of steps; it counts steps: write %sM for millions",
				k.Name, text, number)
		}
		v.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return wrong
		}
		v.SetUint(n)
	case reflect.Float64:
		f, err := strconv.ParseFloat(digits, 64)
		if d, also := units.Duration(text, time.Minute); err != nil && also == nil && k.Type == durationType {
			f, err = d.Minutes(), nil
		}
		if err != nil || f-f != 0 { // the difference is NaN for infinities and for NaN
			return wrong
		}
		v.SetFloat(f)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return wrong
		}
		v.SetBool(text == "true")
	case reflect.String:
		v.SetString(text)
	}
	if c.origins == nil {
		c.origins = map[string]Origin{}
	}
	c.origins[k.Name] = from
	return nil
}

func article(typ string) string {
	switch typ {
	case "integer":
		return "an integer, such as 2000, 2K or 64Ki"
	case "true or false", listType:
		return typ
	}
	return "a " + typ
}

// Value returns the value of a key, given by its full name, in the form of the config file.
func (c *Config) Value(key string) (string, error) {
	i, known := keyIndex[key]
	if !known {
		_, err := Explain(key)
		return "", err
	}
	return c.value(allKeys[i]), nil
}

// value returns the value of a key in the form of the config file.
func (c *Config) value(k Key) string {
	return format(reflect.ValueOf(c).Elem().FieldByIndex(k.index))
}
