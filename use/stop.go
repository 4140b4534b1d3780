package use

import (
	"strings"

	"anneal/tokenizer"
)

// A Stream converts tokens to text, emitted as soon as characters are complete. It ends before the first occurrence of
// one of some stop texts.
type Stream struct {
	decoder *tokenizer.StreamDecoder
	stop    stopper
}

// NewStream returns a Stream that passes text to emit, which may be nil.
func (r *Trained) NewStream(stop []string, emit func(text string)) *Stream {
	if emit == nil {
		emit = func(string) {}
	}
	return &Stream{r.Tokenizer.NewStreamDecoder(), stopper{at: stop, emit: emit}}
}

// Next adds a token, and returns whether the text continues, that is, whether no stop text is complete.
func (x *Stream) Next(id int32) (more bool) {
	x.stop.write(x.decoder.Next(uint32(id)))
	return x.stop.found == ""
}

// End emits the text that was held back, and returns the stop text that was found; "" if none was.
func (x *Stream) End() (stopped string) {
	if x.stop.write(x.decoder.Flush()); x.stop.found == "" {
		x.stop.flush()
	}
	return x.stop.found
}

// A stopper emits a text up to the first complete stop text, and holds back text that may be the beginning of one. The
// result does not depend on how the text is split into pieces.
type stopper struct {
	at    []string
	emit  func(text string)
	held  string
	found string // the stop text that was found
}

// write adds more of the text.
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

// begun returns how many bytes at the end of the held text may begin a stop text.
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

// flush emits all held text.
func (s *stopper) flush() { s.hand(len(s.held)) }

func (s *stopper) hand(n int) {
	if n > 0 {
		s.emit(s.held[:n])
		s.held = s.held[n:]
	}
}
