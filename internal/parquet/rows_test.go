package parquet

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// quote appends a string of JSON as other encoders write it.
func quote(b, s []byte) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.Encode(string(s))
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// rowsOf reads the fields of all rows, each as the line of an object.
func rowsOf(b []byte, limit int) (lines []string, left []Left, err error) {
	f, err := Open(bytes.NewReader(b), int64(len(b)), "text", true)
	if err != nil {
		return nil, nil, err
	}
	for g := range f.Groups {
		rows, err := f.Rows(g, limit, quote)
		if err != nil {
			return lines, nil, err
		}
		for range min(f.Groups[g].Rows, 1<<16) {
			line := []byte("{")
			_, err := rows.Next(func(name string, value []byte) {
				if len(line) > 1 {
					line = append(line, ',')
				}
				line = append(append(quote(line, []byte(name)), ':'), value...)
			})
			if errors.Is(err, ErrLongRow) {
				line = []byte("{too long")
			} else if err != nil {
				return lines, f.Left(), err
			}
			lines = append(lines, string(line)+"}")
		}
	}
	return lines, f.Left(), nil
}

// Every kind of value, in structures, lists and maps, also null or empty, gives the JSON that testdata/make.py
// expects, for pages of both versions, with dictionaries and in every other encoding. Columns that are left out are
// named.
func TestRowsAreTheJSONOfTheirColumns(t *testing.T) {
	files := golden(t)
	b, err := os.ReadFile("testdata/fields.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for _, name := range []string{"fields-v1", "fields-v2"} {
		got, left, err := rowsOf(files[name], 1<<20)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: %d rows of %d, %v", name, len(got), len(want), err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: row %d is\n%s\nwant\n%s", name, i, got[i], want[i])
			}
		}
		var names []string
		for _, l := range left {
			names = append(names, l.Name)
		}
		if s := strings.Join(names, " "); s != "blob hash meta.image images.list.element" {
			t.Errorf("%s: %s are left out", name, s)
		}
	}
	stamps, _, err := rowsOf(files["int96"], 1<<20)
	at := time.Date(1969, 12, 31, 23, 59, 58, 0, time.UTC)
	for i, got := range stamps {
		if want := `{"at":"` + at.Add(time.Duration(i)*(400*24*time.Hour+1001*time.Microsecond)).
			Format("2006-01-02T15:04:05.999999") + `"}`; got != want {
			t.Fatalf("row %d is %s, want %s", i, got, want)
		}
	}
	if err != nil || len(stamps) != 120 {
		t.Errorf("%d timestamps, %v", len(stamps), err)
	}
	nested := files["nested"]
	f, err := Open(bytes.NewReader(nested), int64(len(nested)), "meta.text", true)
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := f.Rows(0, 1<<20, quote)
	var first string
	if _, err := rows.Next(func(name string, value []byte) { first += name + string(value) }); err != nil ||
		first != `id0meta{"url":"u"}` {
		t.Errorf("beside a text in a structure: %s, %v", first, err)
	}
}

// A row whose fields are too long is skipped, and the next one is right.
func TestLongRowsArePassedOver(t *testing.T) {
	b, err := os.ReadFile("testdata/fields.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	got, _, err := rowsOf(golden(t)["fields-v1"], 400)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d rows of %d, %v", len(got), len(want), err)
	}
	long := 0
	for i := range want {
		if got[i] == "{too long}" {
			long++
		} else if got[i] != want[i] || len(want[i]) > 800 { // names do not count
			t.Errorf("row %d is\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
	if long < 20 || long > 100 {
		t.Errorf("%d rows are too long: no test", long)
	}
}

// Truncated or damaged files give an error or other values, and take memory only in proportion to their bytes.
func TestDamagedRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, name := range []string{"fields-v1", "fields-v2", "int96"} {
		b := bytes.Clone(golden(t)[name])
		for range 400 {
			at, bit := r.IntN(len(b)), byte(1)<<r.IntN(8)
			b[at] ^= bit
			checkRows(t, b)
			b[at] ^= bit
		}
	}
}

func checkRows(t *testing.T, b []byte) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	lines, _, _ := rowsOf(b, 1<<16)
	total := 0
	for _, l := range lines {
		total += len(l) + 64
	}
	runtime.ReadMemStats(&after)
	ceiling := uint64(6*maxHeld + 2*maxExpansion*len(b) + 400*total + 64<<20) // quote allocates
	if n := after.TotalAlloc - before.TotalAlloc; n > ceiling {
		t.Errorf("%d bytes with %d bytes of rows: allocated %d", len(b), total, n)
	}
}

// FuzzRows checks that no file causes a panic, that rows are valid JSON, and that memory does not depend on claimed
// sizes.
func FuzzRows(f *testing.F) {
	file := damaged(f)
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		b := file(t, which, edits)
		lines, _, _ := rowsOf(b, 1<<16)
		for _, l := range lines {
			if l != "{too long}" && !json.Valid([]byte(l)) {
				t.Fatalf("not JSON: %s", l)
			}
		}
		checkRows(t, b)
	})
}
