package corpus

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What a document of JSON lines has besides its text is delivered as it stands, in its order, and is written so.
func TestFieldsOfLinesPassUnchanged(t *testing.T) {
	line := `{ "id" : 1e3, "text":"t\u00e9xt", "price": 2.50,"big":123456789012345678901234567890, "meta":{"b":[1 , {"a":null}],"a":"\u00e9\/"} ,"l\u0061ng":"en","text2":true}`
	dir := tree(t, map[string]string{"a.jsonl": line + "\n{\"text\":\"alone\"}\n", "b.txt": "plain"})
	docs, _ := read(t, dir, Options{Fields: true}, ".")
	want := `"id":1e3,"price":2.50,"big":123456789012345678901234567890,"meta":{"b":[1 , {"a":null}],"a":"\u00e9\/"},"l\u0061ng":"en","text2":true`
	if len(docs) != 3 || string(docs[0].Text) != "téxt" || string(docs[0].Fields) != want || docs[0].Moved != nil ||
		docs[1].Fields != nil || docs[2].Fields != nil {
		t.Errorf("%d documents, fields %q, want %q", len(docs), docs[0].Fields, want)
	}
	if docs, _ := read(t, dir, Options{}, "a.jsonl"); docs[0].Fields != nil || docs[0].Moved != nil {
		t.Errorf("fields that nobody asked for: %q", docs[0].Fields)
	}
	out := t.TempDir()
	w := NewWriter(out, 0)
	for _, d := range docs {
		if err := w.Write(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	again, _ := read(t, out, Options{Fields: true}, ".")
	place := `"from":{"source":"a.jsonl","offset":0,"index":0}`
	if d := again[0]; string(d.Fields) != want || string(d.Text) != "téxt" || string(d.Moved) != place {
		t.Errorf("written and read again: %q, %q, want the fields %q and moved %q", d.Fields, d.Moved, want, place)
	}
}

// A field whose name the output needs goes inside of "anneal"; nothing is lost, and no name stands twice.
func TestFieldsWhoseNamesAreTaken(t *testing.T) {
	dir := tree(t,
		map[string]string{"a.jsonl": `{"text":"title","content":"the text","anneal":{"source":"old"},"id":1}`})
	docs, _ := read(t, dir, Options{Fields: true, TextField: "content"}, "a.jsonl")
	out := t.TempDir()
	w := NewWriter(out, 0)
	if err := w.Write(docs[0]); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var got []string
	var l Line
	for _, d := range docs {
		l = Line{
			Text: d.Text, Fields: d.Fields,
			Place: append(AppendPlace(nil, d.Source, d.Offset), append([]byte{','}, d.Moved...)...),
		}
		got = append(got, string(l.Append(nil)))
	}
	want :=
		`{"id":1,"text":"the text","anneal":{"source":"a.jsonl","offset":0,"text":"title","from":{"source":"old"}}}` +
			"\n"
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	again, _ := read(t, out, Options{Fields: true}, ".")
	if string(again[0].Text) != "the text" || string(again[0].Fields) != `"id":1` ||
		!strings.HasPrefix(string(again[0].Moved), `"from":{"source":"a.jsonl"`) {
		t.Errorf("read again: %+v", again)
	}
}

// A line is read back as it was written, whatever stands in it.
func TestLinesComeBack(t *testing.T) {
	some := rapid.SliceOf(rapid.SampledFrom([]byte("a\"\\/u0\n\t\r\x00\x1f\xc3\xa9\xff{}:,")))
	rapid.Check(t, func(t *rapid.T) {
		l := Line{
			Text: some.Draw(t, "text"), Place: AppendPlace(nil, string(some.Draw(t, "source")),
				int64(rapid.IntRange(0, 1<<40).Draw(t, "offset"))),
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "fields") {
			l.Fields = appendMember(l.Fields, fmt.Appendf(nil, `"f%d"`, i), AppendString(nil, some.Draw(t, "value")))
		}
		var back Line
		line := l.Append(nil)
		if err := back.Parse(line); err != nil || string(back.Text) != string(l.Text) ||
			string(back.Fields) != string(l.Fields) || string(back.Place) != string(l.Place) {
			t.Fatalf("%q becomes %+v, %v", line, back, err)
		}
	})
}

// The fields of rows of parquet are those of their columns, whatever splits they are read in; what cannot be a field
// is said once, by its name.
func TestFieldsOfRows(t *testing.T) {
	golden := goldenParquet(t, "fields-v1")
	dir := tree(t, map[string]string{"a.parquet": golden, "b.parquet": golden})
	docs, rep := read(t, dir, Options{Fields: true}, ".")
	var row map[string]any
	d := docs[0] // row 0 has no text
	if err := json.Unmarshal(append(append([]byte("{"), d.Fields...), '}'), &row); err != nil || d.Offset != 1 ||
		row["kind"] != "cöde" || row["day"] != "1971-02-04" || row["text"] != nil {
		t.Errorf("row %d: %s, %v", d.Offset, d.Fields, err)
	}
	var left []string
	for _, f := range rep.LeftFields {
		left = append(left, f.Name)
	}
	if got := strings.Join(left, " "); got != "blob hash meta.image images.list.element" ||
		!strings.Contains(rep.String(), `the field "blob" is dropped: binary`) {
		t.Errorf("left out: %s\n%v", got, rep)
	}
	cut, _, _ := readSplits(t, dir, int64(len(golden)/4), Options{Fields: true})
	for i := range cut {
		cut[i].Index, cut[i].Source = docs[i].Index, docs[i].Source
	}
	if !reflect.DeepEqual(cut, docs) {
		t.Error("in splits the documents are others")
	}
	if _, rep := read(t, dir, Options{Fields: true, MaxLine: 300}, "a.parquet"); counts(rep)[LongFields] == 0 ||
		rep.Lost.FileCount != 0 {
		t.Errorf("fields of more than 300 bytes: %v", rep)
	}
}
