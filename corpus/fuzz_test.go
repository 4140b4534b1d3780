package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"anneal/internal/filetest"
)

// FuzzObject holds object.parse against encoding/json: the same lines are valid, and the text and the other fields are
// the same up to the bytes that are not UTF-8, which encoding/json replaces and we keep.
func FuzzObject(f *testing.F) {
	for _, s := range []string{
		`{"text":"a"}`, `{"id":1,"meta":{"a":[1,2.5e-3,null,true]},"text":"\u00e9\n\ud83d\ude42\ud800 \"q\""}`,
		`{}`, `{"text":1}`,
		`{"text":"a","text":"b"}`, `{"te\u0078t":"esc"}`, "{\"text\":\"\xff\"}", `{"text":"a"} x`, `[1]`,
		`{"text":"a",}`, `{"n":01,"text":""}`,
		`{"text":"a","n":-}`, `{"a":"\q"}`, ` {"a":false , "b" : { } , "c":[ ] }`, `{"text":"\u12"}`, "", `null`,
		`{"anneal":{"a":1},"text":"a","anneal" : [2]}`, `{"text":"a","\u0061nneal":7}`, `{"text":null}`,
		`{"text":"a","text":null}`, `{"text":null,"text":"a"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var o object
		err := o.parse(line, "text", true)
		got := o.text
		var want map[string]any
		wantErr := json.Unmarshal(line, &want)
		if (wantErr == nil && want != nil) != (err == nil || errors.Is(err, errNoField) ||
			errors.Is(err, errNoString) || errors.Is(err, errNull)) {
			t.Fatalf("%q: encoding/json says %v, we say %v", line, wantErr, err)
		}
		if wantErr != nil || want == nil {
			return
		}
		value, present := want["text"]
		text, isString := value.(string)
		switch {
		case !present && !errors.Is(err, errNoField), present && value == nil && !errors.Is(err, errNull),
			present && value != nil && !isString && !errors.Is(err, errNoString), isString && err != nil:
			t.Fatalf("%q: encoding/json has %#v, we say %v", line, value, err)
		case isString && string([]rune(string(got))) != text:
			t.Fatalf("%q: encoding/json has %q, we have %q", line, text, got)
		}
		delete(want, "text")
		from, moved := want["anneal"]
		delete(want, "anneal")
		fields := map[string]any{}
		if err := json.Unmarshal(append(append([]byte("{"), o.fields...), '}'), &fields); err != nil ||
			!reflect.DeepEqual(fields, want) {
			t.Fatalf("%q: encoding/json has %#v, the fields are %s, %v", line, want, o.fields, err)
		}
		place := map[string]any{}
		if err := json.Unmarshal(append(append([]byte("{"), o.moved...), '}'), &place); err != nil ||
			moved != (len(place) == 1) || !reflect.DeepEqual(place["from"], from) {
			t.Fatalf("%q: encoding/json has %#v under anneal, moved are %s, %v", line, from, o.moved, err)
		}
	})
}

// FuzzDocuments reads a damaged file of each kind: no panic, no document beyond the limits, and memory that does not
// depend on what the bytes claim.
func FuzzDocuments(f *testing.F) {
	line := "{\"text\":\"some text\"}\n{\"text\":1}\n"
	reply := warcRecord("response", "u", "application/http", httpReply("200 OK\r\nContent-Type: text/plain\r\n"+
		"Transfer-Encoding: chunked\r\nContent-Encoding: gzip", "3\r\nabc\r\n0\r\n\r\n"))
	pages := warcRecord("response", "u", "application/http", httpReply("200 OK\r\nContent-Type: text/html; charset=gbk",
		"<nav>x</nav><p>"+strings.Repeat("words ", 50)+"\xd6\xd0<a href=x>y"))
	seeds := []string{
		"plain\n\ntext", line, gz("plain text"), gz(line), zst("plain text"), zst(line), wet("u", "text") + reply,
		gz(wet("u", "text")), goldenParquet(f, "delta-v1"), pages, goldenParquet(f, "fields-v1"),
	}
	for _, coding := range []string{"br", "zstd", "deflate", "gzip"} {
		pages += warcRecord("response", "u", "application/http",
			httpReply("200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: "+coding, zst("text")))
	}
	seeds = append(seeds, pages)
	names := []string{
		"f.txt", "f.jsonl", "f.txt.gz", "f.jsonl.gz", "f.txt.zst", "f.jsonl.zst", "f.warc", "f.wet.gz", "f.parquet",
		"g.warc", "g.parquet", "h.warc",
	}
	for kind := range seeds {
		f.Add(uint8(kind), []byte{})
	}
	f.Add(uint8(5), filetest.Splice(0, 1000, "(\xb5/\xfd\x04x20\n0")) // a frame of zstd that claims a window
	opt := Options{MaxDocument: 4096, Piece: 512, MaxLine: 4096, Fields: true}
	dir := filetest.MemoryDir(f)
	f.Fuzz(func(t *testing.T, kind uint8, edits []byte) {
		path := filepath.Join(dir, names[int(kind)%len(names)])
		content := filetest.Edit(t, []byte(seeds[int(kind)%len(seeds)]), edits)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Open([]string{path}, opt)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var total uint64
		for d, err := range r.Documents() {
			if err == nil && (len(d.Text) == 0 || len(d.Text) > 4096) {
				t.Fatalf("%s: document of %d bytes", path, len(d.Text))
			}
			total += uint64(len(d.Text))
		}
		runtime.ReadMemStats(&after)
		// the decompressor's tables, our buffers, and the text while it grows
		ceiling := 8<<20 + 4*total + 8*uint64(len(content))
		if kindOf(path).compression == ".zst" {
			ceiling += 2 * maxWindow // every frame may ask for a larger window than the last
		}
		if kindOf(path).format == warcFile {
			ceiling += 2*maxBodyWindow + 16<<20 // and the decoders of bodies
		}
		if kindOf(path).format == parquetFile {
			ceiling += 128<<20 + 1000*uint64(len(content)) // a page that claims to expand as pages may
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > ceiling {
			t.Errorf("%d bytes of input, %d of text: allocated %d", len(content), total, got)
		}
		rep := r.Report()
		if rep.Documents == 0 && len(rep.Rejects) == 0 && len(content) > 3 && int(kind)%len(names) < 2 {
			t.Errorf("%q: neither a document nor a reason", content)
		}
	})
}

// FuzzSplits reads a damaged file in splits: they are as many as the bytes allow and, if nothing is damaged, have the
// documents of the whole. (A member of gzip that lies about its size, which only BGZF states, is the exception.)
func FuzzSplits(f *testing.F) {
	line := "{\"text\":\"some text\"}\n{\"text\":1}\n"
	names := []string{"f.txt", "f.jsonl", "f.jsonl.zst", "f.jsonl.gz"}
	good := []string{
		strings.Repeat("plain\n\ntext", 12), strings.Repeat(line, 4), zstFrames(strings.Repeat(line, 4), 30),
		bgzf(strings.Repeat(line, 4), 30),
	}
	for kind := range good {
		f.Add(uint8(kind), []byte{}, uint16(50))
	}
	opt := Options{MaxDocument: 64, Piece: 16, MaxLine: 4096}
	dir := filetest.MemoryDir(f)
	f.Fuzz(func(t *testing.T, kind uint8, edits []byte, size uint16) {
		path := filepath.Join(dir, names[int(kind)%len(names)])
		content := filetest.Edit(t, []byte(good[int(kind)%len(good)]), edits)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Open([]string{path}, opt)
		if err != nil {
			t.Fatal(err)
		}
		size = max(size, 20, uint16(len(content)/6)) // few splits: to open one takes longer than to read it
		splits := r.Splits(int64(size))
		if len(splits) > 2+2*len(content)/int(size) {
			t.Fatalf("%d bytes in %d splits of %d", len(content), len(splits), size)
		}
		var got, want []Document
		for _, s := range splits {
			for d, err := range s.Open(nil).Documents() {
				if err != nil {
					t.Fatal(err)
				}
				d.Index = 0
				got = append(got, d)
			}
		}
		for d, err := range r.Documents() {
			if err == nil {
				d.Index = 0
				want = append(want, d)
			}
		}
		rejects := counts(r.Report())
		if rejects[Corrupt]+rejects[Bomb] > 0 || kindOf(path).compression == ".gz" {
			return
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d splits of %d bytes: %s", len(splits), size, d)
		}
	})
}

// FuzzResponse takes damaged HTTP responses apart: no panic, a body within the limit unless nothing was decoded, and
// bounded memory.
func FuzzResponse(f *testing.F) {
	const limit = 4096
	var good []string
	for _, c := range [][2]string{
		{"identity", "text"}, {"chunked", "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"}, {"gzip", gz("text")},
		{"zstd", zst("text")}, {"br", "\x0b\x01\x80text\x03"}, {"deflate", "\x2b\x49\xad\x28\x01\x00"},
	} {
		head := "200 OK\r\nContent-Type: text/plain\r\n"
		good = append(good, httpReply(head+"Content-Encoding: "+c[0], c[1]),
			httpReply(head+"Transfer-Encoding: "+c[0]+", gzip", c[1]))
	}
	for i := range good {
		f.Add(uint8(i), []byte{})
	}
	d := new(bodyDecoder)
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		message := filetest.Edit(t, []byte(good[int(which)%len(good)]), edits)
		size := len(message) // a body is decoded in place
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := d.response(message, limit)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 2*maxBodyWindow+16<<20 {
			t.Errorf("%d bytes allocate %d", size, n)
		}
		switch {
		case len(r.body) > max(limit, size):
			t.Errorf("%d bytes of body from a message of %d", len(r.body), size)
		case len(r.body) > 0 && (err != nil || r.unread != "" || r.unwanted != ""):
			t.Errorf("a body, and %v, %q, %q", err, r.unread, r.unwanted)
		}
	})
}

// FuzzChunks: any body in chunks of any sizes comes back, and nothing comes back of one whose end is missing.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("a body of text"), []byte{3, 1, 200})
	f.Fuzz(func(t *testing.T, body, sizes []byte) {
		var chunked []byte
		rest := body
		for i := 0; len(rest) > 0; i++ {
			n := len(rest)
			if i < len(sizes) {
				n = min(n, 1+int(sizes[i]))
			}
			chunked = append(fmt.Appendf(chunked, "%x;extension=%d\r\n%s", n, i, rest[:n]), "\r\n"...)
			rest = rest[n:]
		}
		whole := append(bytes.Clone(chunked), "0\r\n\r\n"...)
		if got, err := unchunk(whole); err != nil || !bytes.Equal(got, body) {
			t.Fatalf("%q in chunks of %v comes back as %q, %v", body, sizes, got, err)
		}
		if got, err := unchunk(chunked); len(body) > 0 && err == nil {
			t.Fatalf("%q in chunks of %v without an end comes back as %q", body, sizes, got)
		}
	})
}
