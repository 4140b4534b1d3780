package use

import (
	"strings"

	"anneal/tokenizer"
)

// A Stream makes text of tokens as it becomes whole characters, up to the first of some texts to stop at, without it.
type Stream struct {
	decoder *tokenizer.StreamDecoder
	stop    stopper
}

// NewStream returns a Stream that hands text to emit.
func (r *Trained) NewStream(stop []string, emit func(text string)) *Stream {
	return &Stream{r.Tokenizer.NewStreamDecoder(), stopper{at: stop, emit: emit}}
}

// Next takes a token, and returns whether the text goes on: no text to stop at is complete.
func (x *Stream) Next(id int32) (more bool) {
	x.stop.write(x.decoder.Next(uint32(id)))
	return x.stop.found == ""
}

// End hands on what was held back, and returns the text at which it stopped; "" if there was none.
func (x *Stream) End() (stopped string) {
	if x.stop.write(x.decoder.Flush()); x.stop.found == "" {
		x.stop.flush()
	}
	return x.stop.found
}

// A stopper hands on a text up to the first of some texts that is complete, and holds back what may be the beginning of
// one. In which pieces the text comes makes no difference.
type stopper struct {
	at    []string
	emit  func(text string)
	held  string
	found string // the text that it has stopped at
}

// write takes more of the text.
func (s *stopper) write(text string) {
	if text == "" || s.found != "" {
		return
	}
	s.held += text
	begin, end := 0, len(s.held)+1
	for _, stop := range s.at {
		if i := strings.Index(s.held, stop); i >= 0 && (i+len(stop) < end || i+len(stop) == end && i < begin) {
			begin, end, s.found = i, i+len(stop), stop
		}
	}
	if s.found != "" {
		s.hand(begin)
		return
	}
	s.hand(len(s.held) - s.begun())
}

// begun returns how many bytes at the end of what is held may begin a text to stop at.
func (s *stopper) begun() int {
	longest := 0
	for _, stop := range s.at {
		for n := min(len(stop)-1, len(s.held)); n > longest; n-- {
			if strings.HasSuffix(s.held, stop[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// flush hands on all that is held.
func (s *stopper) flush() { s.hand(len(s.held)) }

func (s *stopper) hand(n int) {
	if n > 0 {
		s.emit(s.held[:n])
		s.held = s.held[n:]
	}
}
