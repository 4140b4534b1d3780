package curate

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"anneal/corpus"
	"anneal/internal/filetest"
)

// FuzzJournal reads damaged lines of a journal: no panic, memory in proportion to the line, and an entry that is
// accepted is the same after it is written and read again.
func FuzzJournal(f *testing.F) {
	line, err := json.Marshal(entry{
		record: record{
			Step: 1, Split: 2, Input: "in", Files: map[string]written{"docs/00002.jsonl.zst": {120, "sum"}},
			Kept: 4, Parts: []part{{At: 0}, {At: 60, First: 7}},
		},
		Tally: Report{
			Input: corpus.Report{Documents: 5}, Documents: 5, Kept: 4, Stages: []StageReport{{Name: "c4",
				Rules: []RuleReport{{Name: "c4.words", Documents: 1, Examples: []Example{{Text: "x"}}}}}},
		},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add(filetest.Splice(0, len(line), `{"input":"x","files":{"../up":{}}}`))
	f.Fuzz(func(t *testing.T, edits []byte) {
		line := filetest.Edit(t, line, edits)
		var r *record
		var whole, again entry
		var err error
		n := filetest.Allocated(func() {
			if r = readRecord(line); r != nil {
				err = json.Unmarshal(line, &whole) // as tally does
			}
		})
		if n > uint64(64<<10+300*len(line)) {
			t.Fatalf("%d bytes allocate %d", len(line), n)
		}
		if r == nil || err != nil {
			return
		}
		text, err := json.Marshal(whole)
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if back := readRecord(text); err != nil || !reflect.DeepEqual(back, r) || !reflect.DeepEqual(again, whole) {
			t.Fatalf("%s\nbecame %+v, written and read again %+v, %v", line, whole, again, err)
		}
	})
}

// FuzzSignals reads damaged lines of signals, as --from-signals does: no panic, memory in proportion to the line, and
// what is accepted is the same after it is written and read again.
func FuzzSignals(f *testing.F) {
	d := &Doc{Source: "a\"b", Key: Key{1, 2, 3}, Signals: []Signal{{"x.y", 0.5}, {"x.z", -3}}}
	line := appendSignals(nil, d, &history{bytes: 9, changed: []change{{"n", 1}}})
	f.Add([]byte{})
	for _, number := range []string{"inf", "NaN", "1e999", "0x1p-2", "null", "1_0"} {
		f.Add(filetest.Splice(bytes.Index(line, []byte("0.5")), 3, number))
	}
	f.Add(filetest.Splice(bytes.Index(line, []byte(`"n":1`))+4, 1, "1e300"))
	f.Fuzz(func(t *testing.T, edits []byte) {
		line := filetest.Edit(t, line, edits)
		var d, other Doc
		var h, again history
		var err error
		if n := filetest.Allocated(func() { d.Key, err = h.parse(&d, line) }); n > uint64(64<<10+64*len(line)) {
			t.Fatalf("%d bytes allocate %d", len(line), n)
		}
		if err != nil {
			return
		}
		written := appendSignals(nil, &d, &h) // in names, U+FFFD for what is not UTF-8
		other.Key, err = again.parse(&other, written)
		if twice := appendSignals(nil, &other, &again); err != nil || !bytes.Equal(twice, written) {
			t.Fatalf("%s\nis written as %s\nand then as %s, %v", line, written, twice, err)
		}
	})
}
