package filetest

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"
)

// mostEdits is the length of the longest edits. The fuzzing engine minimizes every interesting input, in a number of
// executions that is quadratic in its length: 4,000 for 64 bytes, 17 million for a file of 4 KiB.
const mostEdits = 64

// Edit applies edits to a copy of a good file and returns it. It lets a fuzz target damage a file of kilobytes with an
// input of a few bytes. An edit consists of a position (2 bytes), the number of bytes to remove there (2) and to
// insert (1), and the inserted bytes. All edits are valid: positions and counts are limited to the existing bytes.
// Edit skips the test if edits are longer than 64 bytes.
func Edit(t testing.TB, good, edits []byte) []byte {
	if len(edits) > mostEdits {
		t.Skip("too many edits")
	}
	file := slices.Clone(good)
	for len(edits) >= 5 {
		at := min(int(binary.LittleEndian.Uint16(edits)), len(file))
		remove := min(int(binary.LittleEndian.Uint16(edits[2:])), len(file)-at)
		insert := edits[5:min(5+int(edits[4]), len(edits))]
		edits = edits[5+len(insert):]
		file = slices.Replace(file, at, at+remove, insert...)
	}
	return file
}

// Splice returns the edit that replaces n bytes at a position by a text.
func Splice(at, n int, text string) []byte {
	edit := binary.LittleEndian.AppendUint16(nil, uint16(at))
	edit = binary.LittleEndian.AppendUint16(edit, uint16(n))
	return append(append(edit, byte(len(text))), text...)
}

// MemoryDir returns an empty directory, in memory if the system has such a file system, where syncing takes no time.
func MemoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "anneal-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
