package attention

import (
	"fmt"
	"strconv"
	"strings"

	"anneal/device"
)

// LongNet is dilated attention (Ding et al. 2023, arXiv 2307.02486), with branches of growing range and dilation. A
// branch (w, r) cuts the row into segments of w tokens and selects every r-th token of each; these see each other.
// Heads start at different offsets. The results of the branches are weighted by their softmax denominators: the sum
// is a softmax over all keys of all branches, where a key in several branches counts once for each.
//
//	branch (w, r): query i sees keys j ≤ i with ⌊j/w⌋ = ⌊i/w⌋ if both i mod w and j mod w are head mod r modulo r
//
// The offset head mod r is the paper's; its code uses ⌊head·r/H⌋. Gradients are exact, including those through the
// denominators, which the paper's code omits. Text: longnet:W/R:W/R:…; longnet:W is W/1, 2W/2, 4W/4, … until a
// segment holds the whole row, and longnet is longnet:512 (the paper starts with 2048). Time: Σ T·w/(2r²) pairs, at
// most T·W. One branch must have r = 1, or some tokens would see nothing. Not for rows shorter than a few segments of
// W.
//
// With the option depth, such as longnet:512:depth, the dilation grows over the layers: the first layers have the first
// branch only, and each further branch joins later; the layers are divided evenly, and the last ones have all
// branches. The paper does not do this; its layers are all alike. It saves most of the pairs below the top and keeps
// the lower layers local, as Longformer does (Beltagy et al. 2020, §4.1).
type LongNet struct {
	Branches []Branch
	Depth    bool // lower layers have only the first branches, higher ones more
}

// Branch consists of segments of Segment tokens, of which every Dilation-th is selected.
type Branch struct{ Segment, Dilation int }

func readLongNet(text string, options []string) (Pattern, error) {
	const usage = "longnet, longnet:512, longnet:512/1:2048/4 with a segment and dilation for each branch, or " +
		"one of these and :depth"
	var l LongNet
	if n := len(options); n > 0 && strings.TrimSpace(options[n-1]) == "depth" {
		l.Depth, options = true, options[:n-1]
	}
	for _, o := range options {
		w, r, both := strings.Cut(o, "/")
		var b Branch
		if err := read(text, []string{"segment=" + w}, option{"segment", &b.Segment, 1}); err != nil {
			return nil, &Error{err.(*Error).Message, usage}
		}
		switch {
		case !both && len(options) > 1:
			return nil, &Error{fmt.Sprintf("%s: segment %d has no dilation", text, b.Segment), usage}
		case both:
			if err := read(text, []string{"dilation=" + r}, option{"dilation", &b.Dilation, 1}); err != nil {
				return nil, &Error{err.(*Error).Message, usage}
			}
		}
		if b.Dilation > 0 && b.Segment%b.Dilation != 0 {
			return nil, &Error{fmt.Sprintf("%s: segment %d is not a multiple of its dilation %d",
				text, b.Segment, b.Dilation), usage}
		}
		l.Branches = append(l.Branches, b)
	}
	if l.Depth && len(l.Branches) > 0 && l.Branches[0].Dilation > 1 {
		return nil, &Error{fmt.Sprintf("%s: with depth the first layers have the first branch only, which must have "+
			"dilation 1", text),
			fmt.Sprintf("longnet:%d/1%s", l.Branches[0].Segment, strings.TrimPrefix(l.String(), "longnet"))}
	}
	return l, nil
}

// String implements Pattern.
func (l LongNet) String() string {
	s := "longnet"
	for _, b := range l.Branches {
		s += ":" + strconv.Itoa(b.Segment)
		if b.Dilation > 0 {
			s += "/" + strconv.Itoa(b.Dilation)
		}
	}
	if l.Depth {
		s += ":depth"
	}
	return s
}

// Resolve implements Pattern.
func (l LongNet) Resolve(length int, _ uint64) Pattern {
	first := Branch{512, 0}
	if len(l.Branches) > 0 {
		first = l.Branches[0]
	}
	if first.Dilation > 0 {
		return l
	}
	first.Dilation = 1
	list := []Branch{first}
	for b := first; b.Segment < length; {
		b = Branch{2 * b.Segment, 2 * b.Dilation}
		list = append(list, b)
	}
	return LongNet{list, l.Depth}
}

func (l LongNet) stages() []Pattern {
	if !l.Depth {
		return []Pattern{l}
	}
	list := make([]Pattern, len(l.Branches))
	for i := range list {
		list[i] = LongNet{Branches: l.Branches[:i+1]}
	}
	return list
}

// Check implements Pattern.
func (l LongNet) Check(length, heads int) error {
	for _, b := range l.Branches {
		if b.Dilation == 1 {
			return nil
		}
	}
	for i := range length {
		for h := range heads {
			if !l.covers(i, h) {
				return &Error{fmt.Sprintf("%s leaves query %d of head %d without a key: no branch has dilation 1",
					l, i, h),
					fmt.Sprintf("longnet:%d/1%s", l.Branches[0].Segment/l.Branches[0].Dilation,
						strings.TrimPrefix(l.String(), "longnet"))}
			}
		}
	}
	return nil
}

// covers reports whether any branch selects query i of a head.
func (l LongNet) covers(i, head int) bool {
	for _, b := range l.Branches {
		if (i%b.Segment-head%b.Dilation)%b.Dilation == 0 {
			return true
		}
	}
	return false
}

func (l LongNet) entries(length, heads int) float64 {
	n := 0.0
	for _, b := range l.Branches {
		n += 2 * float64(length/b.Segment+1) * tiles(min(b.Segment, length)/b.Dilation)
	}
	return n * float64(l.different(heads))
}

func (l LongNet) layout(length, heads, _ int) *device.Layout {
	if len(l.Branches) == 1 && l.Branches[0].Segment >= length {
		return nil
	}
	graphs := make([]device.Graph, l.different(heads))
	for h := range graphs {
		graphs[h].Overlap = len(l.Branches) > 1
		for _, b := range l.Branches {
			for from := 0; from < length; from += b.Segment {
				first := from + h%b.Dilation
				blocks := queries(first, b.Dilation, min(from+b.Segment, length),
					func(q device.Strip) []device.KeyRange {
						return []device.KeyRange{until(first, b.Dilation, after(q))}
					})
				graphs[h].Blocks = append(graphs[h].Blocks, blocks...)
			}
		}
	}
	return cycled(graphs, length, heads)
}

// different returns the number of heads after which the offsets repeat.
func (l LongNet) different(heads int) int {
	n := 1
	for _, b := range l.Branches {
		for k := n; n%b.Dilation != 0 && n < heads; {
			n += k // least common multiple
		}
	}
	return min(n, heads)
}
