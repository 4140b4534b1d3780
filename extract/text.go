package extract

import "strings"

// Text returns the main text of an HTML page in UTF-8; it is empty if the page has none. The contentType is the value
// of the HTTP header, with its charset; it may be empty. Any bytes are a valid page, but a single tag, script or text
// between tags of more than 4 MiB is an error.
func Text(page []byte, contentType string) ([]byte, error) {
	d, err := divide(decode(page, contentType), isXHTML(contentType))
	if err != nil {
		return nil, err
	}
	classify(d.paragraphs, d.text)
	revise(d.paragraphs)
	return d.good(), nil
}

func isXHTML(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/xhtml+xml")
}

// good joins the good paragraphs.
func (d *divider) good() []byte {
	size := 0
	for _, p := range d.paragraphs {
		if p.class == good {
			size += int(p.to-p.from) + len("\n\n")
		}
	}
	out := make([]byte, 0, size)
	item := false // whether the previous one was an item
	for _, p := range d.paragraphs {
		if p.class != good {
			continue
		}
		if len(out) > 0 {
			out = append(out, '\n')
			if !item || !p.item {
				out = append(out, '\n')
			}
		}
		out = append(out, d.text[p.from:p.to]...)
		item = p.item
	}
	return out
}
