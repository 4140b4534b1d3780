package machine

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ReadMemory reads /proc/meminfo, the limits of the process's control groups (v1 and v2), and its resource limits
// (ulimit -v, -d).
func ReadMemory() Memory {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return Memory{}
	}
	m := Memory{Total: field(string(info), "MemTotal:") << 10, Available: field(string(info), "MemAvailable:") << 10}
	bound := func(limit, used int64) {
		m.Total = min(m.Total, limit)
		m.Available = min(m.Available, max(limit-used, 1)) // 0 would be unknown
	}
	if groups, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		for limit, used := range controlGroups("/sys/fs/cgroup", string(groups)) {
			bound(limit, used)
		}
	}
	status, _ := os.ReadFile("/proc/self/status")
	for _, own := range []struct {
		resource int
		used     string
		reserved int64 // future threads and the heap reserve addresses that they do not use
	}{{unix.RLIMIT_AS, "VmSize:", 256 << 20}, {unix.RLIMIT_DATA, "VmData:", 128 << 20}} {
		var r unix.Rlimit
		if unix.Getrlimit(own.resource, &r) == nil && r.Cur < math.MaxInt64/2 {
			bound(int64(r.Cur), field(string(status), own.used)<<10+own.reserved)
		}
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

// controlGroups yields the limit and the use of each control group from the process's own up to the root that has a
// limit. Pages of files do not count as use: the kernel takes them back before it kills. Lines of /proc/self/cgroup
// are "0::/path" (v2) or "n:memory:/path" (v1).
func controlGroups(root, lines string) func(yield func(limit, used int64) bool) {
	return func(yield func(limit, used int64) bool) {
		for line := range strings.Lines(lines) {
			parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(parts) != 3 {
				continue
			}
			base, limitFile, usedFile, prefix := root, "memory.max", "memory.current", ""
			if parts[1] == "memory" {
				base, limitFile, usedFile, prefix = filepath.Join(root, "memory"), "memory.limit_in_bytes",
					"memory.usage_in_bytes", "total_"
			} else if parts[1] != "" {
				continue
			}
			for dir := filepath.Clean("/" + parts[2]); ; dir = filepath.Dir(dir) {
				limit := number(filepath.Join(base, dir, limitFile))
				// v1 represents "no limit" by a number near the largest integer.
				if limit > 0 && limit < math.MaxInt64/2 {
					stat, _ := os.ReadFile(filepath.Join(base, dir, "memory.stat"))
					pages := field(string(stat), prefix+"inactive_file") + field(string(stat), prefix+"active_file")
					if !yield(limit, max(number(filepath.Join(base, dir, usedFile))-pages, 0)) {
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

// Cores names the cores that the process may use, such as "0-3,8"; "" if unknown.
func Cores() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(status)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
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
