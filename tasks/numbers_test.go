package tasks

import (
	"strings"
	"testing"
)

// A number that no float64 holds is refused when it is read: JSON could not write it again after the evaluation.
func TestNumbersThatAreTooLargeAreRefused(t *testing.T) {
	_, err := parseItem([]byte(`{"q": "a", "score": [1, {"x": -1e999}]}`))
	if err == nil || !strings.Contains(err.Error(), "the number -1e999 is too large") {
		t.Error(err)
	}
	if _, err := parseItem([]byte(`{"q": 18446744073709551616, "r": 1e308}`)); err != nil {
		t.Error(err)
	}
}
