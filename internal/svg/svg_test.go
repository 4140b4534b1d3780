package svg

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"
)

// Text that looks like markup stays text, and shapes have the given places, to a hundredth of a pixel.
func TestPicturesAreWellFormed(t *testing.T) {
	var p Picture
	var path, empty Path
	path.Move(1, 2)
	path.Line(1.0/3, -0.001)
	path.Close()
	path.Circle(10, 10, 2.5)
	path.Rect(0, 1, 2, 3)
	p.Group(`fill="#555"`, func() {
		p.Text(1, 2, `a < b & "c" </text>`, `font-size="9"`)
		p.Path(&path, `fill="none"`)
		p.Path(&empty, `fill="none"`)
	})
	var out bytes.Buffer
	if err := p.WriteTo(&out, 100, 50); err != nil {
		t.Fatal(err)
	}
	var text string
	var paths []string
	for d := xml.NewDecoder(&out); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "path" {
				paths = append(paths, token.Attr[0].Value)
			}
		case xml.CharData:
			text += string(bytes.TrimSpace(token))
		}
	}
	if want := `a < b & "c" </text>`; text != want {
		t.Errorf("the text is %q, want %q", text, want)
	}
	want := "M1 2L0.33 0zM7.5 10a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0 -5 0zM0 1h2v3h-2z"
	if len(paths) != 1 || paths[0] != want {
		t.Errorf("the paths are %q, want %q alone", paths, want)
	}
}

// Estimated widths of typical chart texts are within a tenth of the widths in Liberation Sans.
func TestWidthOfText(t *testing.T) {
	for text, em := range map[string]float64{ // sums of the font's advance widths, in em
		"0123456789":                       5.56,
		"learning rate":                    5.56,
		"worth a try: 0.001":               7.73,
		"optimizer.name=muon":              9.92,
		"MMMM":                             3.33,
		"validation loss (nats per token)": 13.56,
	} {
		if got := Width(text, 1); got < 0.9*em || got > 1.1*em {
			t.Errorf("%q is %.2f em wide, want %.2f", text, got, em)
		}
	}
}
