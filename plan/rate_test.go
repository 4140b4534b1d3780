package plan

import (
	"math"
	"strings"
	"testing"

	"anneal/config"
)

// Nothing derives a rate, or a micro-batch, from sizes that are not there.
func TestSizesThatAreNotThere(t *testing.T) {
	for _, c := range []struct {
		width  int
		tokens float64
	}{{0, 1e6}, {-128, 1e6}, {128, 0}, {128, -1}, {128, math.NaN()}} {
		if rate, rule := Rate("adamw", c.width, c.tokens); rate != 0 || rule != "" {
			t.Errorf("width %d, %g tokens: rate %g by %q", c.width, c.tokens, rate, rule)
		}
	}
	for _, c := range [][4]int{{0, 0, 0, 1}, {-1, 8, 128, 8}, {2, 7, 0, 1}, {2, 8, 128, 4}} {
		if got := MicroOf(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%d ranks, %d sequences of %d tokens: %d in a micro-batch, want %d", c[0], c[1], c[2], got, c[3])
		}
	}
}

func TestForeseeSaysWhatIsMissing(t *testing.T) {
	for want, cfg := range map[string]*config.Config{
		"no configuration":     nil,
		"data.path is not set": config.Default(),
	} {
		if _, err := Foresee(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
