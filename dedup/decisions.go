package dedup

import (
	"errors"
	"iter"
	"slices"
)

// Decision says what happens to one document.
type Decision struct {
	Document uint64
	Drop     Rule   // 0: it is kept, without its Cuts
	First    uint64 // the document of its cluster that is kept
	Size     int    // documents in the cluster
	Cuts     []Cut  // in the order of the units, then of the text
}

// Rule is the reason why a document is dropped.
type Rule uint8

// The rules, in order of precedence.
const (
	SameText Rule = 1 + iota
	NearText
	SeenNGrams
)

// Cut is a repeated paragraph or line.
type Cut struct {
	Unit    Unit
	Ordinal uint32 // among the paragraphs or lines of the document, from 0
}

// Decisions holds which of a list of documents are dropped or cut.
type Decisions struct {
	clusters *Clusters
	repeated []uint64 // documents dropped for their n-grams, in order
	exacts   []*Exact
	repeats  []iter.Seq2[Repeat, error] // of those
}

// Close removes the files.
func (d *Decisions) Close() (err error) {
	for _, e := range d.exacts {
		err = errors.Join(err, e.Close())
	}
	return err
}

// exact makes an Exact that is closed with the decisions.
func (d *Decisions) exact(u Unit, minWords int, memory int64, dir string) *Exact {
	e := NewExact(u, minWords, memory, dir)
	d.exacts = append(d.exacts, e)
	return e
}

// repeat completes an Exact and keeps its repeats.
func (d *Decisions) repeat(e *Exact) error {
	repeats, err := e.Repeats()
	d.repeats = append(d.repeats, repeats)
	return err
}

// stays reports whether a document is kept, apart from cuts.
func (d *Decisions) stays(document uint64) bool {
	if first, _ := d.clusters.Of(document); first != document {
		return false
	}
	_, dropped := slices.BinarySearch(d.repeated, document)
	return !dropped
}

// All yields a decision for each document that is dropped, cut or in a cluster, in order. Its Cuts are valid until the
// next.
func (d *Decisions) All() iter.Seq2[Decision, error] {
	return func(yield func(Decision, error) bool) {
		var units []*repeated
		for i, repeats := range d.repeats {
			next, stop := iter.Pull2(repeats)
			defer stop()
			u := &repeated{unit: d.exacts[i].unit, next: next}
			if err := u.advance(); err != nil {
				yield(Decision{}, err)
				return
			}
			units = append(units, u)
		}
		members, repeated := d.clusters.documents, d.repeated
		var x Decision
		for {
			found := false
			first := func(document uint64) {
				if !found || document < x.Document {
					found, x.Document = true, document
				}
			}
			if len(members) > 0 {
				first(members[0])
			}
			if len(repeated) > 0 {
				first(repeated[0])
			}
			for _, u := range units {
				if u.more {
					first(u.at.Document)
				}
			}
			if !found {
				return
			}
			x.Drop, x.Cuts = 0, x.Cuts[:0]
			if len(repeated) > 0 && repeated[0] == x.Document {
				x.Drop, repeated = SeenNGrams, repeated[1:]
			}
			if len(members) > 0 && members[0] == x.Document {
				members = members[1:]
			}
			if x.First, x.Size = d.clusters.Of(x.Document); x.First != x.Document {
				x.Drop = NearText
			}
			for _, u := range units {
				if err := u.take(&x); err != nil {
					yield(Decision{}, err)
					return
				}
			}
			if !yield(x, nil) {
				return
			}
		}
	}
}

// repeated reads the repeats of one unit.
type repeated struct {
	unit Unit
	next func() (Repeat, error, bool)
	at   Repeat
	more bool
}

func (r *repeated) advance() (err error) {
	r.at, err, r.more = r.next()
	return err
}

// take adds the repeated units in x's document.
func (r *repeated) take(x *Decision) error {
	for r.more && r.at.Document == x.Document {
		if r.unit == Document {
			x.Drop = SameText
		} else {
			x.Cuts = append(x.Cuts, Cut{r.unit, r.at.Ordinal})
		}
		if err := r.advance(); err != nil {
			return err
		}
	}
	return nil
}

// CutOut removes the cuts from text, in place.
func CutOut(text []byte, cuts []Cut) []byte {
	if len(cuts) == 0 {
		return text
	}
	gone := make([]bool, len(text))
	for len(cuts) > 0 {
		unit, from, i := cuts[0].Unit, 0, uint32(0)
		for part := range Parts(text, unit) {
			if len(cuts) == 0 || cuts[0].Unit != unit {
				break
			}
			if cuts[0].Ordinal == i {
				for k := range part {
					gone[from+k] = true
				}
				cuts = cuts[1:]
			}
			from += len(part)
			i++
		}
		for len(cuts) > 0 && cuts[0].Unit == unit { // beyond the text
			cuts = cuts[1:]
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
