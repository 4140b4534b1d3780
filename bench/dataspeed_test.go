package bench

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"anneal/prepare"
)

// Every part is measured, on text of the user too; text that no filter leaves is said to be none for this.
func TestBenchDataMeasuresEveryPart(t *testing.T) {
	if testing.Short() {
		t.Skip("three runs of everything")
	}
	source, err := prepare.GoSource()
	if errors.Is(err, prepare.ErrNoGoSource) {
		t.Skip(err)
	}
	docs, _, err := prose(t.Context(), source, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := writeLines(dir, docs); err != nil {
		t.Fatal(err)
	}
	r, err := Data(t.Context(), DataSpeedOptions{
		Text: prepare.Text{Paths: []string{dir}}, Bytes: 1 << 20, Threads: 2, Progress: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	for v, i := reflect.ValueOf(*r), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s was not measured: %+v", v.Type().Field(i).Name, *r)
		}
	}

	code := filepath.Join(t.TempDir(), "x.txt")
	if err := os.WriteFile(code, []byte("{ lorem ipsum"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Data(t.Context(), DataSpeedOptions{
		Text: prepare.Text{Paths: []string{code}}, Bytes: 1 << 20, Progress: func(string) {},
	})
	if err == nil || !strings.Contains(err.Error(), "with prose") {
		t.Errorf("text that the filters drop: %v", err)
	}
}
