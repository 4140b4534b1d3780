package svg

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Picture is an SVG document that is being drawn. Shapes that come later cover earlier ones. Attributes are given as
// they stand in the document, such as `fill="#fff" stroke="#555"`.
type Picture struct{ body strings.Builder }

// Rect draws a rectangle whose top left corner is (x, y).
func (p *Picture) Rect(x, y, width, height float64, attributes string) {
	fmt.Fprintf(&p.body, `<rect x="%s" y="%s" width="%s" height="%s" %s/>`+"\n",
		number(x), number(y), number(width), number(height), attributes)
}

// Path draws a path; nothing if it is empty.
func (p *Picture) Path(path *Path, attributes string) {
	if path.d.Len() > 0 {
		fmt.Fprintf(&p.body, `<path d="%s" %s/>`+"\n", path.d.String(), attributes)
	}
}

// Text writes text on a baseline that begins at (x, y), or as text-anchor says.
func (p *Picture) Text(x, y float64, text, attributes string) {
	fmt.Fprintf(&p.body, `<text x="%s" y="%s" %s>`, number(x), number(y), attributes)
	_ = xml.EscapeText(&p.body, []byte(text)) // a Builder has no errors
	p.body.WriteString("</text>\n")
}

// Group draws shapes that share attributes.
func (p *Picture) Group(attributes string, draw func()) {
	fmt.Fprintf(&p.body, "<g %s>\n", attributes)
	draw()
	p.body.WriteString("</g>\n")
}

// WriteTo writes the picture on a white ground of the given size; it can be shown at any size.
func (p *Picture) WriteTo(w io.Writer, width, height float64) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]s %[2]s"`+
		` width="%[1]s" height="%[2]s" font-family="Liberation Sans,Arial,Helvetica,sans-serif">`+
		"\n"+`<rect width="%[1]s" height="%[2]s" fill="#fff"/>`+"\n%[3]s</svg>\n",
		number(width), number(height), p.body.String())
	return err
}

// A Path is the outline of shapes and lines. The zero value is empty.
type Path struct{ d strings.Builder }

// Move begins a new piece at (x, y).
func (p *Path) Move(x, y float64) { p.d.WriteString("M" + number(x) + " " + number(y)) }

// Line draws on to (x, y).
func (p *Path) Line(x, y float64) { p.d.WriteString("L" + number(x) + " " + number(y)) }

// Close draws back to the beginning of the piece.
func (p *Path) Close() { p.d.WriteByte('z') }

// Circle adds a circle around (x, y).
func (p *Path) Circle(x, y, radius float64) {
	r, diameter := number(radius), number(2*radius)
	p.Move(x-radius, y)
	fmt.Fprintf(&p.d, "a%[1]s %[1]s 0 1 0 %[2]s 0a%[1]s %[1]s 0 1 0 -%[2]s 0z", r, diameter)
}

// Rect adds a rectangle whose top left corner is (x, y).
func (p *Path) Rect(x, y, width, height float64) {
	p.Move(x, y)
	fmt.Fprintf(&p.d, "h%sv%sh%sz", number(width), number(height), number(-width))
}

// number writes a coordinate to a hundredth of a pixel.
func number(v float64) string {
	s := strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0")
	if s = strings.TrimRight(s, "."); s == "-0" {
		return "0"
	}
	return s
}

// Width estimates the width of a text of this font size in the fonts that pictures name, which all have similar
// widths.
func Width(text string, size float64) float64 {
	em := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("ijl.,:;|'!frtI()[]/ ", r):
			em += 0.29
		case strings.ContainsRune("mwMW%@…", r):
			em += 0.85
		case r >= 'A' && r <= 'Z' || r == '=' || r == '+':
			em += 0.67
		default:
			em += 0.55 // digits, most small letters
		}
	}
	return em * size
}
