package machine

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ReadMemory reads /proc/meminfo and the limits of the process's control groups (v1 and v2).
func ReadMemory() Memory {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return Memory{}
	}
	m := Memory{Total: field(string(info), "MemTotal:") << 10, Available: field(string(info), "MemAvailable:") << 10}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return m
	}
	for limit, used := range controlGroups("/sys/fs/cgroup", string(groups)) {
		m.Total = min(m.Total, limit)
		m.Available = min(m.Available, max(limit-used, 0))
	}
	return m
}

// field returns the number after name in a file of "name number …" lines, 0 if there is none.
func field(text, name string) int64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			if words := strings.Fields(rest); len(words) > 0 {
				n, _ := strconv.ParseInt(words[0], 10, 64)
				return n
			}
		}
	}
	return 0
}

// controlGroups yields the limit and the use of each control group with a limit, from the process's own up to the
// root. Lines of /proc/self/cgroup are "0::/path" (v2) or "n:memory:/path" (v1).
func controlGroups(root, lines string) func(yield func(limit, used int64) bool) {
	return func(yield func(limit, used int64) bool) {
		for line := range strings.Lines(lines) {
			parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(parts) != 3 {
				continue
			}
			base, limitFile, usedFile := root, "memory.max", "memory.current"
			if parts[1] == "memory" {
				base, limitFile, usedFile = filepath.Join(root, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"
			} else if parts[1] != "" {
				continue
			}
			for dir := filepath.Clean("/" + parts[2]); ; dir = filepath.Dir(dir) {
				limit := number(filepath.Join(base, dir, limitFile))
				// v1 represents "no limit" by a number near the largest.
				if limit > 0 && limit < math.MaxInt64/2 {
					if !yield(limit, number(filepath.Join(base, dir, usedFile))) {
						return
					}
				}
				if dir == "/" {
					break
				}
			}
		}
	}
}

// number reads a file with a single number; 0 for any other content ("max").
func number(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// CPUName returns the processor's name, "" if unknown.
func CPUName() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Resident returns the memory in use by the process, and its peak, in bytes.
func Resident() (now, peak int64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	return field(string(status), "VmRSS:") << 10, field(string(status), "VmHWM:") << 10
}
