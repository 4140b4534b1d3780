package jsonlimit

import "testing"

func TestValuesAreCountedOutsideStrings(t *testing.T) {
	for text, want := range map[string]Limits{
		``: {}, `1`: {}, `{}`: {1, 1}, `[{},{}]`: {2, 4}, `{"a":1,"b":[1,2]}`: {1, 4},
		`"{,["`: {}, `["\"{,",{}]`: {1, 3}, `["\\",{}]`: {1, 3}, `"\\\"{"`: {}, `{"a`: {1, 1}, `"\`: {},
	} {
		if err := want.Check([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if want.Objects > 0 && (Limits{want.Objects - 1, 100}).Check([]byte(text)) == nil {
			t.Errorf("%s has %d objects at most", text, want.Objects-1)
		}
		if want.Values > 0 && (Limits{100, want.Values - 1}).Check([]byte(text)) == nil {
			t.Errorf("%s has %d values at most", text, want.Values-1)
		}
	}
}
