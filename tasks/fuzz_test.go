package tasks

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Whatever a task file holds, reading it ends soon, with a Problem or a task, and takes little memory.
func FuzzTask(f *testing.F) {
	paths, err := filepath.Glob("testdata/tasks/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatal(paths, err)
	}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("group: g\ntask: [a]\naggregate_metric_list:\n  - metric: acc\n    weight_by_size: false\n"))
	f.Add([]byte(plain + "filter_list: [{name: a, filter: [{function: regex, regex_pattern: (a)}]}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		keys, err := readFile("testdata/tasks/x.yaml", text)
		if err == nil {
			if isGroup(keys) {
				_, err = newGroup("x.yaml", keys)
			} else {
				_, err = newTask("x.yaml", keys)
			}
		}
		runtime.ReadMemStats(&after)
		if p := (*Problem)(nil); err != nil && !errors.As(err, &p) {
			t.Errorf("%T: %v", err, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 128<<20 {
			t.Errorf("%d bytes of YAML take %d MiB", len(text), n>>20)
		}
	})
}

// Whatever a line of data holds, it is an item or an error, in memory in proportion to it.
func FuzzItem(f *testing.F) {
	f.Add([]byte(`{"a": [1, 2.5, "x", null, true, {"b": 1e400}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		item, err := parseItem(text)
		if (item == nil) == (err == nil) {
			t.Errorf("%v, %v", item, err)
		}
	})
}
