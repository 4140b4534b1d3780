package study

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every seed has a directory of its own, and their headlines come together.
func TestASeedEach(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "several")
	d, err := Open(dir, "squares", "of each seed")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var where []string
	list, err := Repeat(t.Context(), d, "squares", []int{2, 3, 4}, func(seed int) int { return seed * seed },
		func(_ context.Context, d *Dir, square int) (*Report, error) {
			where = append(where, filepath.Base(d.Path))
			return &Report{Headlines: []Headline{{"square", float64(square), "m²"}, share("half", 0.5)}}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"seed-2", "seed-3", "seed-4"}; !slices.Equal(where, want) {
		t.Errorf("made in %q, want %q", where, want)
	}
	if len(list) != 2 || !slices.Equal(list[0].Values, []float64{4, 9, 16}) || list[0].Unit != "m²" {
		t.Fatalf("headlines: %+v", list)
	}
	if least, most := list[0].Range(); least != 4 || most != 16 || list[0].Mean() != 29.0/3 {
		t.Errorf("mean %g, from %g to %g", list[0].Mean(), least, most)
	}
	if list[1].Mean() != 50 || list[1].Unit != "%" {
		t.Errorf("a share: %+v", list[1])
	}

	// The error of a seed says which it was.
	_, err = Repeat(t.Context(), d, "squares", []int{7}, func(seed int) int { return seed },
		func(context.Context, *Dir, int) (*Report, error) { return nil, errors.New("no square") })
	if err == nil || !strings.Contains(err.Error(), "seed 7: no square") {
		t.Errorf("error: %v", err)
	}
}
