package nearest

import (
	"strings"
	"testing"
)

func TestEditDistance(t *testing.T) {
	var rows table
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"lr", "rl", 1}, {"dim", "dmi", 1}, {"a", "b", 1},
		{"", "abc", 3},
	} {
		if got := rows.editDistance([]rune(c.a), []rune(c.b)); got != c.want {
			t.Errorf("%q %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestOnlyWhatIsNearIsMeant(t *testing.T) {
	names := []string{"model.dim", "model.heads", "optimizer.lr", "lr", "seed"}
	for name, want := range map[string]string{
		"model.dmi": "model.dim", "sed": "seed", "xyzzy": "", "optimiser.lr": "optimizer.lr", "bar": "", "rl": "lr",
		strings.Repeat("s", 300): "",
	} {
		if got := To(name, names); got != want {
			t.Errorf("%.20q: %q, want %q", name, got, want)
		}
	}
}

func TestBeginning(t *testing.T) {
	names := []string{"eval", "export", "explain", "temperature", "vocab", "to"}
	for name, want := range map[string]string{
		"evaluate": "eval", "temp": "temperature", "vocab-size": "vocab", "ex": "", "exp": "", "token": "", "x": "",
	} {
		if got := Beginning(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
