package extract

import (
	"strings"
	"testing"
	"unicode/utf8"

	"anneal/internal/filetest"
)

// ceiling is the total number of bytes that a page of n bytes may allocate: its text (three bytes for one) and a
// paragraph for every four bytes, with growth, and the attributes of one tag.
func ceiling(n int) uint64 { return uint64(1<<20 + 60*n + 80*min(n, maxToken)) }

// FuzzText reads damaged pages: it must not panic, must bound its memory, must return no NUL, must keep UTF-8
// valid, and must keep neighbouring paragraphs apart.
func FuzzText(f *testing.F) {
	long := strings.Repeat("some words of it ", 20)
	pages := []string{
		"<p>" + long + "<br><br>" + long, "<ul><li>a<li>b</ul>" + long,
		"<nav><a href=x>y</a></nav><h1>t</h1><pre>\n x\n</pre>" + long, "<script><!--<script></script>" + long,
		"<table><td>" + long + "<select><option>x</select>&copy;&amp;\x00", "\xff\xfe<\x00p\x00",
		"<meta charset=gbk>\xb0\xa1" + long, "<a href=x><div></a><h1><button></div>" + long,
	}
	for i := range pages {
		f.Add(uint8(i), []byte{}, "text/html")
		f.Add(uint8(i), []byte{}, "application/xhtml+xml; charset=shift_jis")
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte, contentType string) {
		page := filetest.Edit(t, []byte(pages[int(which)%len(pages)]), edits)
		var text []byte
		var err error
		if got := filetest.Allocated(func() { text, err = Text(page, contentType) }); got > ceiling(len(page)) {
			t.Errorf("%d bytes: allocated %d", len(page), got)
		}
		if err != nil {
			t.Errorf("%d bytes: %v", len(page), err)
		}
		if utf8.Valid(page) && !utf8.Valid(text) && strings.IndexByte(string(page), 0) < 0 {
			t.Errorf("not UTF-8: %q", text)
		}
		if strings.IndexByte(string(text), 0) >= 0 {
			t.Errorf("NUL in %q", text)
		}
		if len(text) > 3*len(page) {
			t.Errorf("%d bytes of text from %d", len(text), len(page))
		}
	})
}
