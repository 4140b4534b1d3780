package dataset

import (
	"encoding/binary"
	"fmt"
)

// documents calls f for each document of the stream, in order, with the positions of its EOT and of its end, and the
// number of its tokens after the EOT that are a prompt. It only reads the document index, in bounded memory.
func (p *split) documents(f func(start, end, prompt uint64)) error {
	for i, s := range p.shards {
		if err := s.documents(p.starts[i], f); err != nil {
			return shardError(s.path, err)
		}
	}
	return nil
}

// documents does the same for one shard, whose first token is at position base.
func (s *shard) documents(base uint64, f func(start, end, prompt uint64)) error {
	if err := s.checkOnce(s.l.index-headerSize, s.l.table-headerSize, &scratch{}); err != nil {
		return err
	}
	index := docIndex{s: s}
	start := uint64(0)
	for i := range s.h.docs {
		end, prompt, err := index.next()
		if err != nil {
			return err
		}
		if end <= start || end > s.h.tokens || prompt > end-start-1 {
			return fmt.Errorf("document index: document %d starts at token %d and ends at %d of %d, "+
				"with a prompt of %d tokens", i, start, end, s.h.tokens, prompt)
		}
		f(base+start, base+end, prompt)
		start = end
	}
	if start != s.h.tokens {
		return fmt.Errorf("document index: the documents have %d tokens, but the header says %d", start, s.h.tokens)
	}
	return nil
}

// docIndex reads the document index from its start, in bounded memory.
type docIndex struct {
	s    *shard
	read uint64 // entries returned
	buf  []byte // bytes read ahead
	room []byte
}

// next returns the end of the next document, and the number of tokens in its prompt.
func (d *docIndex) next() (end, prompt uint64, err error) {
	entry := d.s.h.entry()
	if d.read == d.s.h.docs {
		return 0, 0, fmt.Errorf("document index: the tokens hold more documents than its %d entries", d.s.h.docs)
	}
	if len(d.buf) == 0 {
		n := entry * min(d.s.h.docs-d.read, 8192)
		if uint64(cap(d.room)) < n {
			d.room = make([]byte, n)
		}
		d.buf = d.room[:n]
		if err := d.s.readAt(d.buf, d.s.l.index+int64(entry*d.read)); err != nil {
			return 0, 0, err
		}
	}
	end = binary.LittleEndian.Uint64(d.buf)
	if d.s.h.prompts {
		prompt = binary.LittleEndian.Uint64(d.buf[8:])
	}
	d.buf = d.buf[entry:]
	d.read++
	return end, prompt, nil
}
