package model

import (
	"encoding"
	"fmt"
	"reflect"
)

// A Difference is a key of the shape for which two models have different values.
type Difference struct {
	Key      string // such as model.norm_eps
	Now, Was string // values as the configuration writes them
	Free     bool   // weights trained with one value work with the other, or loading them reports an error
}

// Differences compares every key of c with that of was.
func (c Config) Differences(was Config) []Difference {
	var list []Difference
	now, then := reflect.ValueOf(c), reflect.ValueOf(was)
	for i := range now.NumField() {
		f := now.Type().Field(i)
		key := f.Tag.Get("yaml")
		if key == "-" || f.Tag.Get("of") == "MuP" && !c.MuP && !was.MuP { // not read while muP is off
			continue
		}
		a, b := valueText(now.Field(i), f), valueText(then.Field(i), f)
		if a != b {
			list = append(list, Difference{"model." + key, a, b, f.Tag.Get("weights") == "any"})
		}
	}
	return list
}

// valueText writes the value of a field as the configuration does.
func valueText(v reflect.Value, f reflect.StructField) string {
	if name, has := f.Tag.Lookup("zero"); has && v.IsZero() {
		return name
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, _ := m.MarshalText() // of patterns, positions and scalings: it cannot fail
		return string(text)
	}
	return fmt.Sprint(v.Interface())
}
