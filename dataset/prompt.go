package dataset

import (
	"fmt"
	"slices"
)

// Prompts are the beginnings of documents that a model reads but is not trained to write. Their targets are Ignore,
// so the loss, its gradient and its divisor exclude them.

// readPrompts reads the document index of a shard with prompts into memory: 16 bytes per document.
func (s *shard) readPrompts() error {
	s.ends, s.prompts = make([]uint64, 0, s.h.docs), make([]uint64, 0, s.h.docs)
	all := uint64(0)
	err := s.documents(0, func(_, end, prompt uint64) {
		s.ends, s.prompts, all = append(s.ends, end), append(s.prompts, prompt), all+prompt
	})
	if err != nil {
		return err
	}
	if all != s.h.promptTokens {
		return fmt.Errorf("document index: the prompts have %d tokens, but the header says %d", all, s.h.promptTokens)
	}
	return nil
}

// ignorePrompts sets the targets that are tokens of prompts to Ignore; the first target is the token at pos of the
// stream.
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
		begin := first // its EOT, which is the last target of the previous document
		if doc > 0 {
			begin += s.ends[doc-1]
		}
		for at = max(at, begin+1); at < min(begin+1+s.prompts[doc], end); at++ {
			targets[at-pos] = Ignore
		}
		at = first + s.ends[doc]
	}
}
