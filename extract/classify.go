package extract

import "bytes"

type class uint8

const (
	short class = iota
	bad
	neargood
	good
)

// The thresholds of the thesis. Lengths are in characters.
const (
	maxLinkDensity     = 0.2
	lengthLow          = 70
	lengthHigh         = 200
	maxHeadingDistance = 200
)

// classify sets the class of each paragraph from its own content.
func classify(ps []paragraph, text []byte) {
	for i := range ps {
		p := &ps[i]
		t := text[p.from:p.to]
		switch {
		case float64(p.linked)/float64(p.chars) > maxLinkDensity, bytes.Contains(t, []byte("©")),
			bytes.Contains(t, []byte("&copy")):
			p.alone = bad
		case p.chars < lengthLow && p.linked > 0:
			p.alone = bad
		case p.chars < lengthLow:
			p.alone = short
		case p.chars > lengthHigh:
			p.alone = good
		default:
			p.alone = neargood
		}
	}
}

// revise sets the class of each paragraph from its context. The start and the end of the page count as bad
// paragraphs.
func revise(ps []paragraph) {
	for i := range ps {
		ps[i].class = ps[i].alone
	}
	for i := range ps {
		if p := &ps[i]; p.heading && p.class == short && leads(ps[i+1:]) {
			p.class = neargood
		}
	}
	blocks(ps, func(c class) bool { return c == short || c == neargood }, reviseShort)
	blocks(ps, func(c class) bool { return c == neargood }, reviseNeargood)
	for i := range ps {
		if p := &ps[i]; p.heading && p.class == bad && p.alone != bad && leads(ps[i+1:]) {
			p.class = good
		}
	}
}

// leads reports whether a good paragraph follows within maxHeadingDistance.
func leads(ps []paragraph) bool {
	distance := 0
	for i := range ps {
		if distance > maxHeadingDistance {
			return false
		}
		if ps[i].class == good {
			return true
		}
		distance += int(ps[i].chars)
	}
	return false
}

// blocks calls f for each maximal run of paragraphs whose class is open, with the classes before and behind it.
func blocks(ps []paragraph, open func(class) bool, f func(ps []paragraph, before, behind class)) {
	before := bad
	for i := 0; i < len(ps); {
		j := i
		for j < len(ps) && open(ps[j].class) {
			j++
		}
		behind := bad
		if j < len(ps) {
			behind = ps[j].class
		}
		if i < j {
			f(ps[i:j], before, behind)
		}
		before, i = behind, j+1
	}
}

// reviseShort decides the short paragraphs in a run of short and neargood ones. If only one side of the run is good,
// the short paragraphs between that side and a neargood one are good.
func reviseShort(ps []paragraph, before, behind class) {
	first, last := len(ps), -1 // positions of neargood paragraphs
	for i := range ps {
		if ps[i].class == neargood {
			first, last = min(first, i), i
		}
	}
	for i := range ps {
		p := &ps[i]
		switch {
		case p.class != short:
		case before == behind:
			p.class = before
		case before == bad && i > first, behind == bad && i < last:
			p.class = good
		default:
			p.class = bad
		}
	}
}

// reviseNeargood decides a run of neargood paragraphs.
func reviseNeargood(ps []paragraph, before, behind class) {
	c := bad
	if before == good || behind == good {
		c = good
	}
	for i := range ps {
		ps[i].class = c
	}
}
