package extract

import (
	"bytes"
	"io"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/transform"
)

// decode returns a reader of the page as UTF-8.
func decode(page []byte, contentType string) io.Reader {
	if text, ok := bytes.CutPrefix(page, []byte("\xef\xbb\xbf")); ok {
		return bytes.NewReader(text)
	}
	marked := bytes.HasPrefix(page, []byte("\xff\xfe")) || bytes.HasPrefix(page, []byte("\xfe\xff"))
	if !marked && isUTF8(page) {
		return bytes.NewReader(page)
	}
	set, name, _ := charset.DetermineEncoding(page, contentType)
	if marked {
		page = page[2:]
	}
	if name == "utf-8" {
		return bytes.NewReader(page)
	}
	return transform.NewReader(bytes.NewReader(page), set.NewDecoder())
}

// isUTF8 reports whether at least nine tenths of the bytes that are not ASCII are UTF-8. The page has at least one
// such byte. Text in other character sets fails this test, whatever the page declares.
func isUTF8(page []byte) bool {
	high, bad := 0, 0
	for i := 0; i < len(page); {
		if page[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(page[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		high += n
		i += n
	}
	return high > 0 && 10*bad <= high
}
