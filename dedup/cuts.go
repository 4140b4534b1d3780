package dedup

import "iter"

// cuts reads the repeated units of an Exact beside the documents.
type cuts struct {
	exact *Exact
	next  func() (Repeat, error, bool)
	stop  func()
	at    Repeat
	more  bool
	spans [][2]int // of the document at hand
	count int
}

func newCuts(e *Exact) (*cuts, error) {
	repeats, err := e.Repeats()
	if err != nil {
		return nil, err
	}
	c := &cuts{exact: e}
	c.next, c.stop = iter.Pull2(repeats)
	return c, c.advance()
}

func (c *cuts) advance() (err error) {
	c.at, err, c.more = c.next()
	return err
}

// mark finds what goes from a document.
func (c *cuts) mark(document uint64, text []byte) error {
	c.spans = c.spans[:0]
	from, i := 0, uint32(0)
	for part := range Parts(text, c.exact.unit) {
		if c.more && c.at.Document == document && c.at.Ordinal == i {
			c.spans = append(c.spans, [2]int{from, from + len(part)})
			c.count++
			if err := c.advance(); err != nil {
				return err
			}
		}
		from += len(part)
		i++
	}
	return nil
}

// cutOut removes the spans of all cuts from text, in place.
func cutOut(text []byte, all []*cuts) []byte {
	total := 0
	for _, c := range all {
		total += len(c.spans)
	}
	if total == 0 {
		return text
	}
	gone := make([]bool, len(text))
	for _, c := range all {
		for _, s := range c.spans {
			for i := s[0]; i < s[1]; i++ {
				gone[i] = true
			}
		}
	}
	kept := text[:0]
	for i, b := range text {
		if !gone[i] {
			kept = append(kept, b)
		}
	}
	return kept
}
