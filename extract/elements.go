package extract

// role is the effect of an element on the division into paragraphs.
type role uint8

const (
	inline    role = iota // no effect
	lineBreak             // a line end; two in a row end a paragraph
	link                  // its characters are counted as linked
	edge                  // begins and ends paragraphs
	cell                  // like edge, for an item of a list or table
	block                 // like edge, and its end closes the elements open in it
	listing               // like edge, and holds cells
	pre                   // like edge, and keeps its white space
	heading               // like edge, and its paragraphs are headings
	para                  // like edge, and ends where another block begins
	unread                // like edge, and is left out
	unseen                // is left out
)

// element is an index in elements; 0 stands for all names not listed.
type element uint8

var elements = []struct {
	name string
	role role
}{
	{"", inline},
	{"br", lineBreak}, {"a", link}, {"p", para},
	{"h1", heading}, {"h2", heading}, {"h3", heading}, {"h4", heading}, {"h5", heading}, {"h6", heading},
	{"pre", pre}, {"listing", pre}, {"xmp", pre}, {"plaintext", pre},
	{"ul", listing}, {"ol", listing}, {"dl", listing}, {"dir", listing}, {"menu", listing}, {"table", listing},
	{"li", cell}, {"dt", cell}, {"dd", cell}, {"td", cell}, {"th", cell},
	{"html", edge}, {"body", edge}, {"hr", edge}, {"legend", edge}, {"caption", edge}, {"col", edge},
	{"colgroup", edge}, {"thead", edge}, {"tbody", edge}, {"tfoot", edge}, {"tr", edge}, {"optgroup", edge},
	{"option", edge}, {"address", block}, {"article", block}, {"blockquote", block}, {"center", block},
	{"details", block}, {"div", block}, {"fieldset", block}, {"figcaption", block}, {"figure", block}, {"form", block},
	{"header", block}, {"hgroup", block}, {"main", block}, {"search", block}, {"section", block}, {"summary", block},
	{"script", unseen}, {"style", unseen}, {"title", unseen}, {"template", unseen}, {"noscript", unseen},
	{"button", unseen}, {"select", unseen}, {"textarea", unseen}, {"datalist", unseen},
	{"nav", unread}, {"footer", unread}, {"aside", unread}, {"dialog", unread},
	{"applet", unseen}, {"audio", unseen}, {"canvas", unseen}, {"iframe", unseen}, {"noembed", unseen},
	{"noframes", unseen}, {"object", unseen}, {"svg", unseen}, {"video", unseen},
}

var svg = elementOf["svg"]

var elementOf = func() map[string]element {
	m := map[string]element{}
	for i, e := range elements {
		m[e.name] = element(i)
	}
	return m
}()
