package dash

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// flatten is what scan should return, by encoding/json. With a key twice in an object it keeps the last.
func flatten(prefix string, v any, depth int, into map[string]float64) bool {
	name := func(key string) string {
		if prefix == "" {
			return key
		}
		return prefix + "." + key
	}
	switch x := v.(type) {
	case map[string]any:
		for k, v := range x {
			if !flatten(name(k), v, depth+1, into) {
				return false
			}
		}
		return depth <= maxDepth
	case []any:
		for i, v := range x {
			if !flatten(name(strconv.Itoa(i)), v, depth+1, into) {
				return false
			}
		}
		return depth <= maxDepth
	case nil:
		into[prefix] = math.NaN()
	case bool:
		into[prefix] = 0
		if x {
			into[prefix] = 1
		}
	case float64:
		into[prefix] = x
	}
	return true
}

// FuzzScan compares the scanner with encoding/json: it reads the same numbers, and refuses what that refuses.
func FuzzScan(f *testing.F) {
	for _, line := range []string{
		`{"step":1,"tokens":4096,"loss":5.25,"lr":1e-05,"grad_norm":null,"skipped":true}`,
		`{"step":10,"grad_norms":{"layers":[1,2.5e-3],"groups":{"a\"b":0}},"text":"é\\","x":-0}` + "\n",
		`{}`, ` { "a" : [ ] } `, `{"a":{"b":{"c":{"d":{"e":1}}}}}`, `[1]`, `{"a":1}x`, `{"a":01}`, `{"a":1.}`,
		`{"a":1e999}`,
		`{"a":"\u12"}`, `{"a" 1}`, `{,}`, `{"a":1,}`, "{\"a\":\"\x01\"}", `{"":{"":1}}`, `{"a":tru}`,
		`{"a":1,"a":2}`, `{"a`, ``,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var s scanner
		got, err := s.scan(line)
		var object map[string]any
		wrong := json.Unmarshal(line, &object)
		want := map[string]float64{}
		deep := wrong == nil && !flatten("", object, 0, want)
		short := len(line) < maxName/3 // names are no longer than three times the line: a bad byte becomes three
		if fits := wrong == nil && object != nil && !deep; err == nil && !fits || err != nil && fits && short {
			t.Fatalf("%q: %v, and encoding/json says %v", line, err, wrong)
		}
		if err != nil {
			return
		}
		last := map[string]float64{}
		for _, f := range got {
			last[key(f.name)] = f.value
		}
		for name, x := range want {
			// Of an object that is there twice, encoding/json merges the parts, and a value of another kind goes.
			if y, ok := last[name]; !ok || x != y && !(math.IsNaN(x) && math.IsNaN(y)) {
				t.Fatalf("%q: %s is %v, want %v", line, name, y, x)
			}
		}
	})
}

// key is a name as encoding/json gives it, which replaces what is not UTF-8.
func key(name []byte) string { return string([]rune(string(name))) }

// A line as training writes it is scanned to the bit.
func TestNumbersAreReadToTheBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64().Draw(t, "x")
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return
		}
		var s scanner
		text, _ := json.Marshal(x)
		fields, err := s.scan(fmt.Appendf(nil, `{"step":3,"loss":%s}`, text))
		if err != nil || len(fields) != 2 || fields[1].value != x {
			t.Fatalf("%v: %v %v", x, fields, err)
		}
	})
}

// A line whose names would take far more memory than the line is refused, and so is a name that nobody can read.
func TestNamesAreBounded(t *testing.T) {
	long := strings.Repeat("k", maxName)
	for what, line := range map[string]string{
		"a long key":  `{"` + long + `":1}`,
		"a long name": `{"` + long[:200] + `":{"` + long[:100] + `":1}}`,
		"many items":  `{"` + long[:200] + `":[` + strings.Repeat(`"",`, 100_000) + `""]}`,
	} {
		var s scanner
		if _, err := s.scan([]byte(line)); err == nil || cap(s.names) > 4*maxNames {
			t.Errorf("%s: %v, %d bytes of names", what, err, cap(s.names))
		}
	}
}
