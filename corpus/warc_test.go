package corpus

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"
)

// warcRecord is a record with the true length of its content.
func warcRecord(kind, url, media, content string) string {
	return warcClaim(kind, url, media, fmt.Sprint(len(content)), content)
}

func warcClaim(kind, url, media, length, content string) string {
	return "WARC/1.0\r\nWARC-Type: " + kind + "\r\nWARC-Target-URI: " + url +
		"\r\nWARC-Date: 2024-02-29T01:02:03Z\r\nWARC-Record-ID: <urn:uuid:1>\r\nContent-Type: " + media +
		"\r\nContent-Length: " + length + "\r\n\r\n" + content + "\r\n\r\n"
}

// warcFields are the fields of a record that warcRecord has made, of an HTTP response if reply is true.
func warcFields(url, media string, reply bool) []byte {
	f := fmt.Sprintf(`"url":%q,"date":"2024-02-29T01:02:03Z","id":"<urn:uuid:1>","content_type":%q`, url, media)
	if reply {
		f += `,"http_status":200`
	}
	return []byte(f)
}

func wet(url, text string) string { return warcRecord("conversion", url, "text/plain", text) }

func httpReply(head, body string) string { return "HTTP/1.1 " + head + "\r\n\r\n" + body }

func TestRecordsOfTextAreDelivered(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("packed text"))
	z.Close()
	const r = "application/http; msgtype=response"
	records := []string{
		warcRecord("warcinfo", "", "application/warc-fields", "software: x\r\nWARC/1.0 is the format\r\n"),
		wet("https://a.org/1", "first text\nWARC/1.0\r\nis no record here\n"),
		warcRecord("request", "https://a.org/2", "application/http; msgtype=request", "GET / HTTP/1.1\r\n\r\n"),
		warcRecord("response", "<https://a.org/2>",
			r, "HTTP/1.1 200 OK\nContent-Type: text/plain; charset=utf-8\n\nplain text"), // lines end in a bare LF
		warcRecord("response", "https://a.org/3", "", httpReply("200 OK\r\nContent-Type: Text/Plain\r\n"+
			"Transfer-Encoding: chunked", "7\r\nchunked\r\n5\r\n text\r\n0\r\n\r\n")),
		warcRecord("response", "https://a.org/4",
			r, httpReply("200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip", packed.String())),
		warcRecord("resource", "https://a.org/5", "text/plain", "resource"),
		warcRecord("response", "https://a.org/6", r, httpReply("200 OK\r\nContent-Type: text/html", "<p>HTML")),
		warcRecord("response", "https://a.org/7", r, httpReply("404 Not Found\r\nContent-Type: text/plain", "no")),
		warcRecord("response", "https://a.org/8", r, httpReply("200 OK\r\nContent-Type: image/png", "\x89PNG")),
		warcRecord("response", "dns:a.org", "text/dns", "20240229010203\r\na.org. 300 IN A 192.0.2.1\r\n"),
		wet("https://a.org/9", ""),
		wet("https://a.org/10", "nul\x00nul"),
		wet("https://a.org/11", "last"),
	}
	text := strings.Join(records, "")
	var members strings.Builder
	for _, r := range records {
		members.WriteString(gz(r))
	}
	for name, content := range map[string]string{
		"a.warc": text, "a.warc.wet": text, "a.warc.wet.gz": members.String(), "a.warc.zst": zst(text),
		"b.warc": strings.TrimSuffix(text, "\r\n\r\n"),
	} {
		dir := tree(t, map[string]string{name: content})
		docs, rep := read(t, dir, Options{Fields: true}, name)
		want := []Document{
			{Fields: warcFields("https://a.org/1", "text/plain", false),
				Text: []byte("first text\nWARC/1.0\r\nis no record here\n")},
			{Fields: warcFields("https://a.org/2", "text/plain; charset=utf-8", true), Text: []byte("plain text")},
			{Fields: warcFields("https://a.org/3", "Text/Plain", true), Text: []byte("chunked text")},
			{Fields: warcFields("https://a.org/4", "text/plain", true), Text: []byte("packed text")},
			{Fields: warcFields("https://a.org/5", "text/plain", false), Text: []byte("resource")},
			{Fields: warcFields("https://a.org/11", "text/plain", false), Text: []byte("last")},
		}
		for i, record := range []int{1, 3, 4, 5, 6, 13} {
			want[i].Source, want[i].Index, want[i].Offset = name, i, int64(len(strings.Join(records[:record], "")))
		}
		if d := cmp.Diff(want, docs); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(map[Reason]int{NoMainText: 1, NotText: 3, Empty: 1, Binary: 1}, counts(rep)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// The main text of pages is delivered, whatever they are wrapped and encoded in.
func TestPagesAreDeliveredAsTheirText(t *testing.T) {
	text := strings.Repeat("schöne Wörter einer Seite ", 20) + "Ende"
	latin1, err := charmap.ISO8859_1.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	page := func(text string) string { return "<nav><a href=/>menu</a></nav><p>" + text + "<p>&copy; 2020" }
	const r = "application/http; msgtype=response"
	content := strings.Join([]string{
		warcRecord("response", "https://a.org/0", r, httpReply("200 OK\r\nContent-Type: text/html", page(text))),
		warcRecord("response", "https://a.org/1",
			r, httpReply("200 OK\r\nContent-Type: Text/HTML; charset=ISO-8859-1\r\nContent-Encoding: gzip",
				gz(page(latin1)))),
		warcRecord("response", "https://a.org/2", r, httpReply("200 OK\r\nContent-Type: application/xhtml+xml\r\n"+
			"Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(page(text)), page(text)))),
		warcRecord("resource", "https://a.org/3", "text/html; charset=latin1", page(latin1)),
		warcRecord("response", "https://a.org/4", r, httpReply("404 Not Found\r\nContent-Type: text/html", page(text))),
		warcRecord("response", "https://a.org/5", r, httpReply("200 OK\r\nContent-Type: text/html", page("short"))),
		warcRecord("response", "https://a.org/6", r, httpReply("200 OK\r\nContent-Type: text/html", "")),
		warcRecord("response", "https://a.org/7",
			r, httpReply("200 OK\r\nContent-Type: text/html\r\nContent-Encoding: br", page(latin1))),
		warcRecord("response", "https://a.org/8",
			r, httpReply("200 OK\r\nContent-Type: text/html; charset=utf-8", page(strings.Repeat("w\xff\xfex ", 200)))),
		warcRecord("response", "https://a.org/9", r, httpReply("200 OK\r\nContent-Type: text/html",
			"<script>"+strings.Repeat("x", 4<<20)+"</script>"+page(text))),
	}, "")
	docs, rep := read(t, tree(t, map[string]string{"a.warc": content, "b.html": page(text)}), Options{}, ".")
	if len(docs) != 5 || string(docs[4].Text) != page(text) {
		t.Fatalf("%d documents, want 4 pages and a file as it is; %v", len(docs), rep)
	}
	for i, d := range docs[:4] {
		if string(d.Text) != text || d.Fields != nil || d.Index != i {
			t.Errorf("page %d: %s, %q", i, d.Fields, d.Text)
		}
	}
	if d := cmp.Diff(map[Reason]int{NotText: 1, BadBody: 1, NoMainText: 2, NotUTF8: 1, TooLong: 1}, counts(rep)); d !=
		"" {
		t.Error(d, rep)
	}
	gbk := warcRecord("resource", "https://a.org", "text/html; charset=gbk", page(strings.Repeat("\xd6\xd0", 9000)))
	if docs, rep := read(t, tree(t, map[string]string{"a.warc": wet("u", "text") + gbk}), Options{MaxLine: 20_000},
		"."); len(docs) != 1 || counts(rep)[TooLong] != 1 {
		t.Errorf("%d documents where text is longer than its page may be; %v", len(docs), rep)
	}
}

// A record that lies about its length, has no length, an endless head or no head at all is rejected by itself; the
// ones behind it are read.
func TestBrokenRecordsAreRejectedAndReadingGoesOn(t *testing.T) {
	text := strings.Repeat("words of a record that is longer than others\n", 8)
	for name, c := range map[string]struct {
		bad  string
		want Reason
		lost int // good records behind it that go with it
	}{
		"too short":   {warcClaim("conversion", "u", "text/plain", fmt.Sprint(len(text)-10), text), BadRecord, 0},
		"at a line":   {warcClaim("conversion", "u", "text/plain", "45", text), BadRecord, 0},
		"too long":    {warcClaim("conversion", "u", "text/plain", fmt.Sprint(len(text)+100), text), BadRecord, 1},
		"the end":     {warcClaim("conversion", "u", "text/plain", "9999", text), BadRecord, 0},
		"ignored":     {warcClaim("metadata", "u", "text/plain", "9999999", text), BadRecord, 0},
		"none":        {warcClaim("conversion", "u", "text/plain", "", text), BadRecord, 0},
		"negative":    {warcClaim("conversion", "u", "text/plain", "-5", text), BadRecord, 0},
		"huge number": {warcClaim("conversion", "u", "text/plain", "99999999999999999999", text), BadRecord, 0},
		"huge head":   {strings.Replace(wet("u", text), "text/plain", strings.Repeat("x", 100_000), 1), BadRecord, 0},
		"many heads": {strings.Replace(wet("u", text), "Content-Type",
			strings.Repeat("X: y\r\n", 20_000)+"Content-Type", 1), BadRecord, 0},
		"over limit": {wet("u", strings.Repeat(text, 100)), TooLong, 0},
		"bad HTTP":   {warcRecord("response", "u", "application/http", "not HTTP"), BadRecord, 0},
		"cut chunk": {warcRecord("response", "u", "application/http",
			httpReply("200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked", "ff\r\nchunk")), BadBody, 0},
	} {
		content := wet("a", "before") + c.bad
		for i := range 4 {
			content += wet("b", fmt.Sprint("after ", i))
		}
		dir := tree(t, map[string]string{"a.wet": content})
		docs, rep := read(t, dir, Options{MaxLine: 20_000}, "a.wet")
		if len(docs) != 5-c.lost || string(docs[0].Text) != "before" || string(docs[len(docs)-1].Text) != "after 3" ||
			counts(rep)[c.want] != 1 || len(rep.Rejects) != 1 {
			t.Errorf("%s: %d documents, want %d, rejects %v", name, len(docs), 5-c.lost, rep)
			continue
		}
		if r := rep.Rejects[0].Examples[0]; r.Line != 2 || r.Offset != int64(len(wet("a", "before"))) {
			t.Errorf("%s: rejected at record %d, byte %d", name, r.Line, r.Offset)
		}
	}
}

func TestWhatIsNoWARCIsSaidOnce(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.wet": "some text\nof many lines\n" + strings.Repeat("y", 100_000) + "\n" + wet("u", "text"),
		"b.wet": strings.Repeat("no\n", 1000),
	})
	docs, rep := read(t, dir, Options{}, ".")
	if len(docs) != 1 || string(docs[0].Text) != "text" || counts(rep)[BadRecord] != 2 {
		t.Errorf("%d documents, %v", len(docs), rep)
	}
}

// Cut off at any byte, a file gives the records before the cut, and says so unless the cut is between records.
func TestCutOffWARC(t *testing.T) {
	const tail = len("\r\n\r\n")
	content, ends := "", []int{}
	for i := range 10 {
		content += wet("u", fmt.Sprint("text of record ", i))
		ends = append(ends, len(content))
	}
	dir := t.TempDir()
	for n := 1; n < len(content); n += 2 {
		if err := os.WriteFile(filepath.Join(dir, "a.wet"), []byte(content[:n]), 0o644); err != nil {
			t.Fatal(err)
		}
		in, err := Open([]string{dir}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		part, got, want, between := in.Splits(0)[0].Open(nil), 0, 0, false
		for d, err := range part.Documents() {
			if err != nil || string(d.Text) != fmt.Sprint("text of record ", got) {
				t.Fatalf("cut at %d: record %d is %q, %v", n, got, d.Text, err)
			}
			got++
		}
		for _, end := range ends {
			if n >= end-tail {
				want++
				between = n <= end
			}
		}
		rejects := counts(part.Report())
		if got != want || between != (len(rejects) == 0) || rejects[Corrupt]+rejects[BadRecord] != len(rejects) {
			t.Errorf("cut at %d of %d: %d records, want %d; rejects %v", n, len(content), got, want, rejects)
		}
	}
}

// A body is read under every coding that browsers ask for, several in a row, and as it is if it does not begin as its
// head says; what cannot be decoded is lost, and grows no further than a record may.
func TestBodiesAreDecoded(t *testing.T) {
	text := strings.Repeat("A page under Brotli: words, words and more words. ", 3)
	pack := func(s string, w interface {
		io.WriteCloser
		Reset(io.Writer)
	}) string {
		var b bytes.Buffer
		w.Reset(&b)
		w.Write([]byte(s))
		w.Close()
		return b.String()
	}
	bare, _ := flate.NewWriter(nil, 6)
	// of the text, by the original
	brotli, err := base64.StdEncoding.DecodeString(
		"G5UAgAR0Y6mOfk63aWuCIIiwAQcOabTpYIvT4CELT0JFtkniYl9U3f50UKC0+Ybh3iQA")
	if err != nil {
		t.Fatal(err)
	}
	chunked := func(s string) string {
		return fmt.Sprintf("%x;a=b\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", 7, s[:7], len(s)-7, s[7:])
	}
	for name, c := range map[string]struct {
		head, body string
		want       Reason
	}{
		"gzip":         {"Content-Encoding: gzip", gz(text), ""},
		"zlib":         {"Content-Encoding: deflate", pack(text, zlib.NewWriter(nil)), ""},
		"bare deflate": {"Content-Encoding: deflate", pack(text, bare), ""},
		"brotli":       {"Content-Encoding: br", string(brotli), ""},
		"zstd":         {"Content-Encoding: zstd", zst(text), ""},
		"chunked zstd": {"Transfer-Encoding: chunked\r\nContent-Encoding: zstd", chunked(zst(text)), ""},
		"two in a row": {"Content-Encoding: gzip, br\r\nTransfer-Encoding: GZip, chunked",
			chunked(gz(text)), ""}, // br is missing
		"gzip under gzip":  {"Content-Encoding: gzip\r\nContent-Encoding: gzip", gz(gz(text)), ""},
		"gzip and a rest":  {"Content-Encoding: gzip", gz(text) + "\r\n", ""},
		"gzip in two":      {"Content-Encoding: gzip", gz(text[:50]) + gz(text[50:]) + "\x1f", ""},
		"gzip and half":    {"Content-Encoding: gzip", gz(text) + gz(text)[:9], BadBody},
		"identity":         {"Content-Encoding: identity", text, ""},
		"decoded already":  {"Content-Encoding: gzip\r\nTransfer-Encoding: chunked", text, ""},
		"zstd in the head": {"Content-Encoding: zstd", text, ""},
		"br in the head":   {"Content-Encoding: br", text, ""},
		"deflate in it":    {"Content-Encoding: deflate", text, ""},
		"none":             {"Content-Encoding: none", text, ""},
		"a charset":        {"Content-Encoding: UTF-8", text, ""},
		"unknown":          {"Content-Encoding: compress", text, ""},
		"unknown, packed":  {"Content-Encoding: compress", "\x1f\x9d" + text, BadBody},
		"cut off":          {"Content-Encoding: gzip", gz(text)[:20], BadBody},
		"cut off brotli":   {"Content-Encoding: br", string(brotli[:20]), BadBody},
		"bomb":             {"Content-Encoding: br, gzip, zstd", zst(gz(strings.Repeat("x", 100_000))), BadBody},
		"too many":         {"Content-Encoding: gzip, gzip, gzip, gzip, gzip", gz(text), BadBody},
	} {
		record := warcRecord("response", "u",
			"application/http", httpReply("200 OK\r\nContent-Type: text/plain\r\n"+c.head, c.body))
		docs, rep := read(t, tree(t, map[string]string{"a.warc": record + wet("u", "next")}),
			Options{MaxLine: 20_000}, ".")
		if c.want != "" && (len(docs) != 1 || counts(rep)[c.want] != 1 || rep.Lost.Documents != 1) ||
			c.want == "" && (len(docs) != 2 || string(docs[0].Text) != text) {
			t.Errorf("%s: %d documents, %v", name, len(docs), rep)
		}
	}
}

// Text under a wrong head of deflate stays as it is, even if it begins like a short stream.
func TestTextThatBeginsLikeDeflateIsText(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		text := []byte("K") // the last block, in fixed codes
		for range 40 {
			text = append(text, byte(' '+r.IntN(95)))
		}
		if got, err := new(bodyDecoder).decode(text, "deflate", 1000); string(got) != string(text) {
			t.Fatalf("%q became %q, %v", text, got, err)
		}
	}
}
