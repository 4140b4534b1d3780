package machine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryIsKnownOnLinux(t *testing.T) {
	m := ReadMemory()
	if m.Available <= 0 || m.Total < m.Available {
		t.Errorf("%+v: want 0 < available ≤ total", m)
	}
}

// The smallest limit between the process's group and the root counts, and "max" is no limit.
func TestControlGroupLimitsAreFound(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		files       map[string]string
		limit, used int64
	}{
		{"v2, limit on the parent", "0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "1000\n",
			"a/memory.current": "300\n"}, 1000, 300},
		{"v1", "5:cpu:/\n4:memory:/a\n", map[string]string{"memory/a/memory.limit_in_bytes": "2000\n",
			"memory/a/memory.usage_in_bytes": "7\n"}, 2000, 7},
		{"v2, pages of files", "0::/a\n", map[string]string{"a/memory.max": "1000\n", "a/memory.current": "900\n",
			"a/memory.stat": "anon 200\nfile 700\ninactive_file 500\nactive_file 150\n"}, 1000, 250},
		{"v1, pages of files", "4:memory:/a\n",
			map[string]string{"memory/a/memory.limit_in_bytes": "1000\n", "memory/a/memory.usage_in_bytes": "900\n",
				"memory/a/memory.stat": "inactive_file 1\ntotal_inactive_file 500\ntotal_active_file 150\n"}, 1000,
			250},
		{"v1, no limit", "4:memory:/\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0,
			0},
		{"hostile", "x\n0::../..\n::\n", nil, 0, 0},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var limit, used int64
		for l, u := range controlGroups(root, c.lines) {
			limit, used = l, u
		}
		if limit != c.limit || used != c.used {
			t.Errorf("%s: limit %d used %d, want %d and %d", c.name, limit, used, c.limit, c.used)
		}
	}
}
