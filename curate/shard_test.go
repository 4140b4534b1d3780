package curate

import (
	"bytes"
	"encoding/json"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"anneal/corpus"
)

// Whatever bytes a document has, its line is JSON that other readers accept, with U+FFFD for each byte that is not
// UTF-8.
func TestLinesAreJSONForAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.SampledFrom([]byte("a\"\\\n\t\r\x00\x1f\xc3\xa9\xff\xe2\x82"))).Draw(t, "text")
		line := appendString(nil, text)
		var got string
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%q for %q: %v", line, text, err)
		}
		if want := string([]rune(string(text))); got != want ||
			string(line) != string(appendString(nil, []byte(want))) {
			t.Fatalf("%q is written as %q and read as %q, want %q", text, line, got, want)
		}
	})
}

// What is written about a document is read back, whatever its bytes: texts, places, numbers to the last bit.
func TestLinesComeBack(t *testing.T) {
	some := rapid.SliceOf(rapid.SampledFrom([]byte("a\"\\/u0\n\t\r\x00\x1f\xc3\xa9\xff")))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<40)
		d := &Doc{
			Key:    Key{n.Draw(t, "source"), n.Draw(t, "split"), n.Draw(t, "row")},
			Source: string(valid(some.Draw(t, "path"))), Text: valid(some.Draw(t, "text")),
		}
		d.offset = int64(n.Draw(t, "offset"))
		for i := range rapid.IntRange(0, 2).Draw(t, "fields") {
			member := appendString(append(strconv.AppendInt([]byte(`"f`), int64(i), 10), `": `...),
				some.Draw(t, "value"))
			d.Fields = append(append(d.Fields, ",   "[:min(i, 1)]...), member...)
			d.moved = []byte(`"from":{"anneal":"}"},"text":1`)[:rapid.SampledFrom([]int{0, 21, 30}).Draw(t, "moved")]
		}
		line, _ := appendDocument(nil, nil, d)
		in, err := parseDocument(new(corpus.Line), line)
		fields := bytes.ReplaceAll(d.Fields, []byte(`": "`), []byte(`":"`))
		if err != nil || in.Key != d.Key || in.Source != d.Source || in.Offset != d.offset ||
			string(in.Text) != string(d.Text) ||
			string(in.Fields) != string(fields) || string(in.Moved) != string(d.moved) || !json.Valid(line) {
			t.Fatalf("%+v becomes %+v, %v", d, in, err)
		}
		h := &history{bytes: n.Draw(t, "bytes"), verdict: Verdict{Drop: true, Rule: "a.b"}}
		for range rapid.IntRange(0, 3).Draw(t, "numbers") {
			v := rapid.Float64Range(-1e300, 1e300).Draw(t, "value")
			d.Add(string(valid(some.Draw(t, "name"))), v)
			h.changed = append(h.changed, change{"normalize", n.Draw(t, "cut") - 1<<39})
		}
		var back history
		var doc Doc
		key, err := back.parse(&doc, appendSignals(nil, d, h))
		if err != nil || key != d.Key || back.bytes != h.bytes || !slices.Equal(doc.Signals, d.Signals) ||
			!slices.Equal(back.changed, h.changed) {
			t.Fatalf("%+v of %+v becomes %+v of %+v, %v", h, d.Signals, back, doc.Signals, err)
		}
	})
}

// Any bytes are a document or signals, or an error, with no more memory than a few times their length.
func FuzzShardLines(f *testing.F) {
	d := &Doc{Source: "a\"b", Text: []byte("text\n"), Signals: []Signal{{"x.y", 0.5}}}
	line, _ := appendDocument(nil, nil, d)
	f.Add(line)
	f.Add(appendSignals(nil, d, &history{changed: []change{{"x", 1}}}))
	f.Fuzz(func(t *testing.T, line []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parseDocument(new(corpus.Line), line)
		var h history
		_, other := h.parse(new(Doc), line)
		runtime.ReadMemStats(&after)
		if err == nil && other == nil {
			t.Errorf("%q is a document and signals", line)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(64*len(line)+1<<20) {
			t.Errorf("%d bytes allocate %d", len(line), n)
		}
	})
}
