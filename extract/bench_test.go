package extract

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// page returns a typical page: a third of its bytes are text.
func page(r *rand.Rand, paragraphs int) string {
	var b strings.Builder
	words := func(n int) {
		for range n {
			b.WriteString("etaoinshrdlu"[r.IntN(12):][:1] + "words of a text"[r.IntN(8):][:1+r.IntN(7)] + " ")
		}
	}
	b.WriteString("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page</title><script>" +
		strings.Repeat("var a = {b: function(c) { return c < 1 && '</p>'; }};\n", 40) +
		"</script></head><body>\n<nav><ul>")
	for i := range 30 {
		fmt.Fprintf(&b, "<li class=\"menu-item menu-item-%d\"><a href=\"https://example.org/section/%d?x=1&amp;y=2\" "+
			"title=\"Section\">Section %d</a></li>\n", i, i, i)
	}
	b.WriteString("</ul></nav><div id=\"main\" class=\"container content wide\"><article>")
	for i := range paragraphs {
		if i%5 == 0 {
			fmt.Fprintf(&b, "<h2 id=\"h%d\" class=\"title\">Part %d</h2>\n", i, i)
		}
		b.WriteString("<div class=\"block block-text\" data-id=\"12345678\"><p style=\"margin: 0 auto; color: #333\">")
		words(60)
		b.WriteString("<a class=\"link external\" href=\"https://example.org/a/long/path/to/a/page.html\">a link</a> " +
			"&amp; <strong>")
		words(8)
		b.WriteString("</strong> ")
		words(20)
		b.WriteString("</p></div>\n<div class=\"share\"><a href=\"#\" class=\"button share-button\"><span " +
			"class=\"icon\"></span>Share</a><!-- comment --></div>\n")
	}
	b.WriteString("</article></div><footer><p>© 2020 A company</p></footer></body></html>")
	return b.String()
}

// Bytes of HTML per second, for a generated page and, if it is installed, the Go specification.
func BenchmarkText(b *testing.B) {
	pages := map[string]string{"generated": page(rand.New(rand.NewPCG(1, 1)), 60)}
	if root, err := exec.Command("go", "env", "GOROOT").Output(); err == nil {
		if spec, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "doc", "go_spec.html")); err == nil {
			pages["go_spec"] = string(spec)
		}
	}
	for name, p := range pages {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				if text, err := Text([]byte(p), "text/html"); len(text) == 0 || err != nil {
					b.Fatal(len(text), err)
				}
			}
		})
	}
}
