// Package nanjson writes and reads structs whose numbers may be unknown, which is NaN in Go, or infinite. JSON has
// neither, so they are written as null, or left out with the option omitempty. A number that is 0 is always written.
package nanjson

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Marshal writes a struct as encoding/json does, except for its fields of type float64. Fields need a json tag; fields
// of embedded structs are written beside the others.
func Marshal(v any) ([]byte, error) {
	object, err := appendFields([]byte{'{'}, reflect.ValueOf(v))
	return append(object, '}'), err
}

func appendFields(object []byte, v reflect.Value) (_ []byte, err error) {
	for i := range v.NumField() {
		f, x := v.Type().Field(i), v.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			if object, err = appendFields(object, x); err != nil {
				return nil, err
			}
			continue
		}
		if name == "-" || option == "omitempty" && empty(x) {
			continue
		}
		text, err := value(x)
		if err != nil {
			return nil, err
		}
		if len(object) > 1 {
			object = append(object, ',')
		}
		object = strconv.AppendQuote(object, name)
		object = append(append(object, ':'), text...)
	}
	return object, nil
}

// empty reports whether omitempty leaves a value out.
func empty(x reflect.Value) bool {
	switch x.Kind() {
	case reflect.Float64:
		return !finite(x.Float())
	case reflect.Map, reflect.Slice, reflect.String:
		return x.Len() == 0
	}
	return x.IsZero()
}

func value(x reflect.Value) ([]byte, error) {
	if x.Kind() != reflect.Float64 {
		return json.Marshal(x.Interface())
	}
	return appendNumber(nil, x.Float()), nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// Forget makes every float64 in a struct, and in the structs that it embeds, unknown. If encoding/json then reads a
// text into the struct, numbers that are null or missing stay unknown.
func Forget(v any) { forget(reflect.ValueOf(v).Elem()) }

func forget(v reflect.Value) {
	for i := range v.NumField() {
		switch x := v.Field(i); {
		case v.Type().Field(i).Anonymous && x.Kind() == reflect.Struct:
			forget(x)
		case x.Kind() == reflect.Float64:
			x.SetFloat(math.NaN())
		}
	}
}

// Number is a float64 in JSON, null if it is not finite; null is read as NaN.
type Number float64

// MarshalJSON writes null for non-finite numbers.
func (n Number) MarshalJSON() ([]byte, error) { return appendNumber(nil, float64(n)), nil }

// UnmarshalJSON reads null back as NaN.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

func appendNumber(text []byte, f float64) []byte {
	if !finite(f) {
		return append(text, "null"...)
	}
	return strconv.AppendFloat(text, f, 'g', -1, 64)
}
