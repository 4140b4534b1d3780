package curate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"anneal/internal/fileio"
)

// betweenDir holds the files that one pass leaves for the next; it is removed when everything is done.
const betweenDir = "between"

func temporary(name string) bool { return strings.HasPrefix(name, betweenDir+"/") }

// state holds the finished work: the records whose input has not changed.
type state struct {
	maps     [][]*record // by pass, then split
	compared []*record   // before each pass; none before the first
}

func newState(passes, splits int) (s state) {
	for range passes {
		s.maps = append(s.maps, make([]*record, splits))
	}
	s.compared = make([]*record, passes)
	return s
}

// whole reports whether a pass is done.
func (s *state) whole(pass int) bool {
	for _, e := range s.maps[pass] {
		if e == nil {
			return false
		}
	}
	return true
}

// complete reports whether everything is done.
func (s *state) complete() bool { return s.whole(len(s.maps) - 1) }

// done counts the finished splits of all passes.
func (s *state) done() (n int) {
	for _, all := range s.maps {
		for _, e := range all {
			if e != nil {
				n++
			}
		}
	}
	return n
}

// survey finds the records of finished work that the state lacks, by the hash of their input, pass by pass. If all is
// true, the files between passes must also exist.
func (r *runner) survey(s *state, all bool) {
	left := func(name string) bool { return !all && temporary(name) }
	for k := range r.passes {
		if k > 0 && s.compared[k] == nil && s.whole(k-1) {
			if e := r.journal.find(place{2*k - 1, 0}, r.sums(s, k-1)); e != nil && len(e.Parts) == len(r.splits) &&
				r.journal.sound(e, left) {
				s.compared[k] = e
			}
		}
		if k > 0 && s.compared[k] == nil {
			return
		}
		for i := range r.splits {
			p := place{2 * k, i}
			if s.maps[k][i] != nil || len(r.journal.records[p]) == 0 {
				continue
			}
			if e := r.journal.find(p, r.input(s, k, i)); e != nil && r.journal.sound(e, left) {
				s.maps[k][i] = e
			}
		}
	}
}

// input returns the hash of everything that a split of a pass depends on.
func (r *runner) input(s *state, k, i int) string {
	if k == 0 {
		return r.origin.identity(r.splits[i])
	}
	p := s.compared[k].Parts[i]
	return fmt.Sprint(s.maps[k-1][i].Files[r.passes[k-1].docs(i)].Sum, " ", p.Sum, " ", p.First)
}

// sums returns a hash of all documents that a pass keeps.
func (r *runner) sums(s *state, k int) string {
	h := sha256.New()
	for i, e := range s.maps[k] {
		fmt.Fprintln(h, i, e.Files[r.passes[k].docs(i)].Sum)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// update reads which splits any task has finished since the last call.
func (r *runner) update() {
	r.journal.follow()
	r.survey(&r.state, true)
	if !r.state.complete() {
		r.finished()
	}
}

// finished reports whether everything is done. If so, it takes over the records, even if the files between passes no
// longer exist.
func (r *runner) finished() bool {
	if r.journal.count[2*len(r.passes)-2] < len(r.splits) {
		return false
	}
	s := newState(len(r.passes), len(r.splits))
	r.survey(&s, false)
	if !s.complete() {
		return false
	}
	r.state = s
	return true
}

// changed counts the finished splits whose input has changed since.
func (r *runner) changed() (n int) {
	for i, e := range r.state.maps[0] {
		if all := r.journal.records[place{0, i}]; e == nil && len(all) > 0 &&
			r.journal.find(place{0, i}, r.input(&r.state, 0, i)) == nil {
			n++
		}
	}
	return n
}

// fileSum returns the SHA-256 of a file.
func fileSum(path string) (string, error) {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
