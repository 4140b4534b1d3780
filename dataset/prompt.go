package dataset

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Prompts are the beginnings of documents that a model reads but is not trained to write: their targets are Ignore, so that
// they count neither in the loss nor in its gradient nor in what the loss is divided by.

// readPrompts reads the document index of a shard with prompts into memory: 16 bytes a document.
func (s *shard) readPrompts(buf *scratch) error {
	if err := s.checkOnce(s.l.index-headerSize, s.l.table-headerSize, buf); err != nil {
		return err
	}
	raw := make([]byte, s.l.table-s.l.index)
	if err := s.readAt(raw, s.l.index); err != nil {
		return err
	}
	s.ends, s.prompts = make([]uint64, s.h.docs), make([]uint64, s.h.docs)
	start, all := uint64(0), uint64(0)
	for i := range s.ends {
		end, prompt := binary.LittleEndian.Uint64(raw[16*i:]), binary.LittleEndian.Uint64(raw[16*i+8:])
		if end <= start || end > s.h.tokens || prompt > end-start-1 {
			return fmt.Errorf("document index: document %d from token %d ends at %d of %d and has a prompt of %d tokens", i, start, end, s.h.tokens, prompt)
		}
		s.ends[i], s.prompts[i] = end, prompt
		start, all = end, all+prompt
	}
	if start != s.h.tokens || all != s.h.promptTokens {
		return fmt.Errorf("document index: the documents have %d tokens, %d of them in prompts; the header says %d and %d", start, all, s.h.tokens, s.h.promptTokens)
	}
	return nil
}

// ignorePrompts sets the targets that are tokens of prompts to Ignore; the first target is the token at pos of the stream.
func (p *split) ignorePrompts(targets []int32, pos uint64) {
	end := min(pos+uint64(len(targets)), p.tokens)
	for at := pos; at < end; {
		i := p.find(at)
		s, first := p.shards[i], p.starts[i]
		if s.prompts == nil {
			at = first + s.h.tokens
			continue
		}
		doc, exact := slices.BinarySearch(s.ends, at-first)
		if exact {
			doc++ // it ends before at
		}
		begin := first // its EOT, which is the target that ended the document before
		if doc > 0 {
			begin += s.ends[doc-1]
		}
		for at = max(at, begin+1); at < min(begin+1+s.prompts[doc], end); at++ {
			targets[at-pos] = Ignore
		}
		at = first + s.ends[doc]
	}
}
