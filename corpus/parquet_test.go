package corpus

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// goldenParquet returns one of the golden files, which hold the same 120 rows; every fifth is null where nulls may be.
func goldenParquet(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../internal/parquet/testdata", name+".parquet"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRowsOfAColumnAreDelivered(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.parquet": goldenParquet(t, "dictionary-zstd-v1"), "b.parquet": goldenParquet(t, "nested"),
	})
	for name, field := range map[string]string{"a.parquet": "text", "b.parquet": "meta.text"} {
		var rejects []Reject
		docs, rep := read(t, dir,
			Options{TextField: field, MaxLine: 30, OnReject: func(r Reject) { rejects = append(rejects, r) }}, name)
		at, left := 0, 0
		for row := range int64(120) {
			want := fmt.Sprintf("document %d %s", row%40, strings.Repeat("wörd ", int(row%7)))
			reason := Reason("")
			switch {
			case row%5 == 3:
				reason = Null
			case row%11 == 0:
				reason = Empty
			case len(want) > 30:
				reason = TooLong
			}
			if reason != "" {
				if r := rejects[left]; r.Reason != reason || int64(r.Line) != row+1 {
					t.Errorf("%s: row %d is rejected as %+v, want %q", name, row, r, reason)
				}
				left++
				continue
			}
			if d := docs[at]; string(d.Text) != want || d.Offset != row || d.Index != at {
				t.Errorf("%s: row %d is %+v, want %q", name, row, d, want)
			}
			at++
		}
		if at != len(docs) || left != len(rejects) || at < 30 || left < 30 || rep.Files != 1 {
			t.Errorf("%s: %d documents and %d rejects, want %d and %d", name, len(docs), len(rejects), at, left)
		}
	}
}

// A damaged row group costs what follows in it and nothing else; a column that is not there or of another type, and a
// file that is no parquet file, are said.
func TestDamagedParquetIsRejected(t *testing.T) {
	good := goldenParquet(t, "plain-v1")
	bad := []byte(good)
	for i := 2000; i < 2010; i++ {
		bad[i] ^= 0x55
	}
	dir := tree(t, map[string]string{
		"bad.parquet": string(bad), "cut.parquet": good[:len(good)-10], "none.parquet": "",
		"text.parquet": strings.Repeat("text ", 100), "list.parquet": goldenParquet(t, "list"),
		"lz4.parquet": goldenParquet(t, "lz4"),
	})
	docs, rep := read(t, dir, Options{}, ".")
	c := counts(rep)
	if len(docs) < 140 || len(docs) >= 180 || c[Corrupt] != 4 || c[NoText] != 1 || docs[len(docs)-1].Offset != 119 {
		t.Errorf("%d documents, %v", len(docs), rep)
	}
	os.WriteFile(filepath.Join(dir, "fine.txt"), []byte("fine"), 0o644)
	if _, rep := read(t, dir, Options{TextField: "id"}, "bad.parquet", "fine.txt"); rep.Documents != 1 ||
		counts(rep)[TextNoString] != 1 {
		t.Errorf("a column of numbers: %v", rep)
	}
}

// One text of a dictionary that stands in every one of a billion rows, or a billion nulls, take a few hundred bytes on
// disk: such a file is given up when it has expanded too far.
func TestParquetBombIsStopped(t *testing.T) {
	const rows = 1 << 30
	defer func(n int64) { freeExpansion = n }(freeExpansion)
	freeExpansion = 1 << 20
	for name, level := range map[string]byte{"a text": 1, "nulls": 0} {
		dir := tree(t, map[string]string{"a.parquet": parquetBomb(rows, level), "b.txt": "fine"})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := 0
		r, err := Open([]string{dir}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range r.Documents() {
			n++
		}
		runtime.ReadMemStats(&after)
		if rep := r.Report(); counts(rep)[Bomb] != 1 || n != rep.Documents || rep.Bytes > freeExpansion+500*11_000 ||
			after.TotalAlloc-before.TotalAlloc > 16<<20 {
			t.Errorf("%s: %d documents, %d bytes allocated, %v", name, n, after.TotalAlloc-before.TotalAlloc, rep)
		}
	}
}

// parquetBomb is a file with a column of rows values, each the same 10,000 bytes of a dictionary (level 1) or null
// (level 0).
func parquetBomb(rows int, level byte) string {
	field := func(delta int, kind byte, content string) string {
		return string([]byte{byte(delta)<<4 | kind}) + content
	}
	i32 := func(delta, v int) string { return field(delta, 5, string(binary.AppendVarint(nil, int64(v)))) }
	i64 := func(delta, v int) string { return field(delta, 6, string(binary.AppendVarint(nil, int64(v)))) }
	text := strings.Repeat("x", 10_000)
	value := string(binary.LittleEndian.AppendUint32(nil, uint32(len(text)))) + text
	run := string(binary.AppendUvarint(nil, uint64(rows)<<1))
	levels := run + string(level)
	data := string(binary.LittleEndian.AppendUint32(nil, uint32(len(levels)))) + levels + "\x01" + run + "\x00"
	dictionary := i32(1, 2) + i32(1, len(value)) + i32(1, len(value)) + field(4, 12, i32(1, 1)+i32(1, 0)+"\x00") +
		"\x00" + value
	page := i32(1, 0) + i32(1, len(data)) + i32(1, len(data)) +
		field(2, 12, i32(1, rows)+i32(1, 8)+i32(1, 3)+i32(1, 3)+"\x00") + "\x00" + data
	name := field(4, 8, "\x06schema") + i32(1, 1) + "\x00"
	column := i32(1, 6) + i32(2, 1) + field(1, 8, "\x04text") + "\x00"
	meta := i32(4, 0) + i64(3, len(dictionary+page)) + i64(2, 4+len(dictionary)) + i64(2, 4) + "\x00"
	group := field(1, 9, "\x1c"+field(3, 12, meta)+"\x00") + i64(2, rows) + "\x00"
	footer := field(2, 9, "\x2c"+name+column) + i64(1, rows) + field(1, 9, "\x1c"+group) + "\x00"
	return "PAR1" + dictionary + page + footer +
		string(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) + "PAR1"
}
