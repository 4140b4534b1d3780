package extract

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"anneal/internal/filetest"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// long is a paragraph that is good by itself.
var long = strings.Repeat("some words of it ", 20) + "end"

func mainText(t *testing.T, page, contentType string) string {
	text, err := Text([]byte(page), contentType)
	if err != nil {
		t.Fatalf("%.200q: %v", page, err)
	}
	return string(text)
}

func TestLayoutOfText(t *testing.T) {
	for name, c := range map[string][2]string{
		"paragraphs": {"<p>" + long + "</p><p>short</p><p>" + long, long + "\n\nshort\n\n" + long},
		"line break": {"<p>" + long + " <br>\n  next", long + "\nnext"},
		"two breaks": {long + "<br> <br>" + long, long + "\n\n" + long},
		"list": {
			"<p>" + long + "<ul><li>one<li><p>two</p><p>more</p></li><li>three</li><li>four</ul>last<p>" + long,
			long + "\n\none\ntwo\n\nmore\n\nthree\nfour\n\nlast\n\n" + long},
		"table": {long + "<table><tr><td>a</td><td>b</td></tr><tr><th>c</table>" + long,
			long + "\n\na\nb\nc\n\n" + long},
		"pre": {long + "<pre>\n\n  if x {\n\t\ty  = 1\n  }\n\n</pre>" + long,
			long + "\n\n  if x {\n\t\ty  = 1\n  }\n\n" + long},
		"two pre":       {long + "<pre>a\nb</pre><pre>c</pre>" + long, long + "\n\na\nb\n\nc\n\n" + long},
		"pre with <br>": {long + "<pre>a<br>b<br><br>c</pre>" + long, long + "\n\na\nb\n\nc\n\n" + long},
		"inline":        {"<p>" + long + "<b> a</b> <i>b</i><u>c</u>", long + " a bc"},
		"entities": {long + " &lt;b&gt; &eacute;&#8212;&#x4e2d;&nbsp;&amp;amp; &unknown; &",
			long + " <b> é—中 &amp; &unknown; &"},
		"blanks": {long + "\t\u00a0\u3000\r\n x", long + " x"},
		"sections": {"<section>" + long + "</section><article>" + long +
			"<figure>f<figcaption>g</figcaption></figure><footer>" + long, long + "\n\n" + long},
		"heading":       {"<p>lost</p><h2>kept</h2><p>" + long, "kept\n\n" + long},
		"heading, open": {"<h2>kept<p>" + long + "</p><p>lost", "kept\n\n" + long},
		"heading, far":  {"<h2>lost</h2><p><a href=x>" + long + "</a></p><p>" + long, long},
		"links": {"<p>" + long + "</p><p>" + long + "<a href=x>" + long + "</a></p><p>" + long,
			long + "\n\n" + long},
		"link in blocks": {"<a href=x><div>" + long + "</div><p>" + long + "</p></a><p>" + long, long},
		"link not ended": {"<p><a href=x>more</p><p>" + long + "</p><td><a href=x>y</td><td>" + long,
			long + "\n\n" + long},
		"anchor":    {"<a name=top>" + long + "<p>" + long, long + "\n\n" + long},
		"copyright": {"<p>" + long + " &copy; 2020<p>" + long, long},
		"left out": {
			"<title>t</title><script>if (a<b) '<p>'</script><style>p{}</style><noscript><p>on</noscript><nav>" + long +
				"<div>x</div></nav><template><p>" + long +
				"</template><p>" + long + "<button><div>b</div></button> x<!-- <p> " +
				"--><svg><title>t</title><text>t</text></svg> y<select><option>" + long + "</select></p><aside>" +
				long, long + " x y"},
		"left out, not ended":   {"<div><aside>" + long + "</div><p>" + long + "<button>x", long},
		"script that ends late": {"<script><!-- <script> </script> " + long + " --></script>" + long, long},
		"self-closing":          {"<div/><script/>" + long + "</script>" + long, long},
		"nothing":               {"<p>short", ""},
		"no tags":               {long, long},
		"NUL":                   {"\x00" + long + " a\x00b<p\x00>\x00", long + " ab"},
		"cut in a tag":          {"<p>" + long + "<a hre", long},
		"cut in an entity":      {long + " x&amp", long + " x&"},
		"cut in a comment":      {long + "<!-- " + long, long},
		"cut in a character":    {"中文" + long + " \xe4\xb8", "中文" + long + " \xe4\xb8"},
		"bad end tags":          {"</p></div></a></nav></>" + long + "</body></html>", long},
		"broken tags":           {"< p>" + long + " a < b <3 <", "< p>" + long + " a < b <3 <"},
		"CDATA is a comment":    {"<p>" + long + "<![CDATA[ x ]]>", long},
	} {
		if got := mainText(t, c[0], "text/html"); got != c[1] {
			t.Errorf("%s: %q\nwant %q", name, got, c[1])
		}
	}
}

func TestXHTMLEndsEmptyElements(t *testing.T) {
	page := `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><script src="x"/><title/></head><body><nav/><p>` +
		long + `</p><a href="x"/><p>` + long + `<![CDATA[ <x> ]]></p></body></html>`
	if got, want := mainText(t, page, "Application/XHTML+xml; charset=utf-8"), long+"\n\n"+long+" <x>"; got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestElementsOfSVGMayEndAtOnce(t *testing.T) {
	for _, empty := range []string{`<title/>`, `<defs><style type="text/css"/></defs>`, `<script/>`} {
		page := `<html><body><svg viewBox="0 0 1 1">` + empty + `<path d="M0 0"/></svg><p>` + long + `</p></body></html>`
		if got := mainText(t, page, "text/html"); got != long {
			t.Errorf("after %s: %q", empty, got)
		}
	}
}

func TestCharacterSets(t *testing.T) {
	european := strings.Repeat("schöne Grüße für Zoë. ", 20) + "Ende"
	asian := strings.Repeat("日本語の文書、中国。", 30)
	encode := func(e encoding.Encoding, s string) string {
		out, err := e.NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	utf16 := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	for name, c := range map[string]struct{ page, contentType, want string }{
		"UTF-8":           {european, "text/html; charset=UTF-8", european},
		"not said":        {"<p>" + strings.Repeat(" ", 2000) + asian, "", asian},
		"byte order mark": {"\xef\xbb\xbf" + european, "text/html; charset=iso-8859-1", european},
		"header":          {encode(charmap.ISO8859_15, european), "text/html; charset=\"ISO-8859-15\"", european},
		"meta":            {`<meta charset=Shift_JIS><p>` + encode(japanese.ShiftJIS, asian), "text/html", asian},
		"meta http-equiv": {`<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=gbk">` +
			encode(simplifiedchinese.GBK, asian), "text/html", asian},
		"ISO-2022-JP":        {encode(japanese.ISO2022JP, asian), "text/html; charset=iso-2022-jp", asian},
		"UTF-16":             {encode(utf16, european), "text/html; charset=utf-8", european},
		"windows-1252":       {encode(charmap.Windows1252, european+" “q” €"), "", european + " “q” €"},
		"wrong header":       {european, "text/html; charset=iso-8859-1", european},
		"wrong meta":         {"<meta charset=big5>" + european, "text/html", european},
		"unknown":            {european, "text/html; charset=no-such", european},
		"broken header":      {european, "text/html; charset=\"", european},
		"a broken character": {european + " \xff", "text/html; charset=utf-8", european + " \xff"},
		"header before meta": {"<meta charset=utf-8>" + encode(charmap.ISO8859_1, european),
			"text/html; charset=iso-8859-1", european},
	} {
		if got := mainText(t, c.page, c.contentType); got != c.want {
			t.Errorf("%s: %.80q\nwant %.80q", name, got, c.want)
		}
	}
}

// Pages that could make a reader slow or large take time and memory in proportion to their length.
func TestHostilePages(t *testing.T) {
	const size = 512 << 10
	for name, part := range map[string]string{
		"divs": "<div>", "spans": "<span>", "links": "<a href=x>y", "links around blocks": "<a href=x><div>",
		"paragraphs": "<p>x", "short lists": "<ul><li>x", "tables": "<table><tr><td>", "headings": "<h1>x",
		"end tags": "</a></div></p>", "breaks": "<br>", "open tag": "<p a ", "attributes": "<a b=c d=e f>",
		"comments": "<!--x--><!-", "entities": "&amp;&#x110000;&nGt;&#0;", "ampersands": "&", "angles": "<",
		"NULs": "\x00", "blanks": " ", "scripts": "<script></script", "navs": "<nav><p>x", "pre": "<pre> \n",
		"declarations": "<!DOCTYPE ", "CDATA": "<![CDATA[", "breaks in links": "<a href=x><br>x",
		"broken UTF-8": "\xff\xfe\xe2\x80",
	} {
		for _, around := range []string{"", strings.Repeat("<a href=y>", 200) + strings.Repeat("<div>", 300)} {
			p := []byte(around + strings.Repeat(part, size/len(part)) + "<p>" + long)
			start := time.Now()
			if allocated := filetest.Allocated(func() { Text(p, "") }); allocated > ceiling(len(p)) {
				t.Errorf("%s: %d bytes allocated for %d", name, allocated, len(p))
			}
			if d := time.Since(start); d > 3*time.Second {
				t.Errorf("%s: %v for %d bytes", name, d, len(p))
			}
		}
	}
}

func TestTooLongTagsAreErrors(t *testing.T) {
	for _, around := range [][2]string{
		{"<p a='", "'>"}, {"<script>", "</script>"}, {"<pre>", "</pre>"}, {"<!--", "-->"},
	} {
		for _, size := range []int{maxToken - 100, maxToken + 100} {
			text, err := Text([]byte(long+around[0]+strings.Repeat("x", size)+around[1]+long), "")
			if (err != nil) != (size > maxToken) || (err != nil) != (text == nil) {
				t.Errorf("%s and %d bytes: %d bytes of text, %v", around[0], size, len(text), err)
			}
		}
	}
}

// Elements beyond the limit end without ending others.
func TestDeepNestingEnds(t *testing.T) {
	for _, n := range []int{maxOpen - 1, maxOpen, maxOpen + 1, 5000} {
		p := "<nav>" + strings.Repeat("<div>", n) + long + strings.Repeat("</div>", n) + long + "</nav><p>" +
			long + " behind" +
			strings.Repeat("<div>", n) + "<script>" + long + "</script>"
		if got := mainText(t, p, ""); got != long+" behind" {
			t.Errorf("%d deep: %d bytes of text, want %d", n, len(got), len(long)+7)
		}
	}
}

// The fast revision of classes gives the same result as the rules read literally.
func TestRevisionIsThatOfTheRules(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		ps := make([]paragraph, r.IntN(12))
		for i := range ps {
			ps[i] = paragraph{chars: uint32(1 + r.IntN(150)), alone: class(r.IntN(4)), heading: r.IntN(4) == 0}
		}
		want := literally(ps)
		revise(ps)
		for i := range ps {
			if ps[i].class != want[i] {
				t.Fatalf("seed %d: paragraph %d of %v is %s, want %s",
					seed, i, ps, classNames[ps[i].class], classNames[want[i]])
			}
		}
	}
}

// literally looks at the context of every paragraph anew.
func literally(ps []paragraph) []class {
	c := make([]class, len(ps))
	for i, p := range ps {
		c[i] = p.alone
	}
	near := func(i, step int, stop ...class) class {
		for i += step; i >= 0 && i < len(c); i += step {
			for _, s := range stop {
				if c[i] == s {
					return s
				}
			}
		}
		return bad
	}
	ahead := func(i int) bool {
		for j, distance := i+1, 0; j < len(ps) && distance <= maxHeadingDistance; j++ {
			if c[j] == good {
				return true
			}
			distance += int(ps[j].chars)
		}
		return false
	}
	for i, p := range ps {
		if p.heading && c[i] == short && ahead(i) {
			c[i] = neargood
		}
	}
	next := append([]class(nil), c...)
	for i := range c {
		if c[i] != short {
			continue
		}
		before, behind := near(i, -1, good, bad), near(i, 1, good, bad)
		switch {
		case before == behind:
			next[i] = before
		case before == bad && near(i, -1, good, bad, neargood) == neargood, behind == bad &&
			near(i, 1, good, bad, neargood) == neargood:
			next[i] = good
		default:
			next[i] = bad
		}
	}
	copy(c, next)
	for i := range c {
		if c[i] == neargood {
			if near(i, -1, good, bad) == bad && near(i, 1, good, bad) == bad {
				c[i] = bad
			} else {
				c[i] = good
			}
		}
	}
	for i, p := range ps {
		if p.heading && c[i] == bad && p.alone != bad && ahead(i) {
			c[i] = good
		}
	}
	return c
}
