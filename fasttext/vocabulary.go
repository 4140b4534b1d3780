package fasttext

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
)

// maxLine is the number of bytes of a line that training uses.
const maxLine = 1 << 20

// maxEntries is the largest number of words and labels counted at once. When there are more, the rarest are dropped,
// those seen once first.
const maxEntries = 22_500_000

// line is the position of a training line in the file.
type line struct {
	at   int64
	size int32
}

// vocabulary counts tokens.
type vocabulary struct {
	entries []entry
	slots   []int32 // 1 + index; 0 is free
	rarest  int64   // entries with lower counts were dropped during the scan
	lines   []line  // lines that begin with a label: 16 bytes each
	bytes   int64   // total size of lines
	tokens  int64
}

type entry struct {
	token string
	hash  uint32
	label bool
	count int64
}

// scan reads all lines and counts their tokens.
func (v *vocabulary) scan(ctx context.Context, in io.Reader, progress func(int64)) error {
	r := bufio.NewReaderSize(in, maxLine)
	v.slots = make([]int32, 1<<16)
	var at int64
	var long []byte
	for {
		b, err := r.ReadSlice('\n')
		size := int64(len(b))
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long[:0], b...) // only this part is counted: the buffer has this size
			for errors.Is(err, bufio.ErrBufferFull) {
				b, err = r.ReadSlice('\n')
				size += int64(len(b))
			}
			b = long
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if size > 0 {
			if v.line(b) {
				v.lines = append(v.lines, line{at, int32(len(b))})
				v.bytes += int64(len(b))
			}
			at += size
			progress(at)
		}
		if err != nil {
			return ctx.Err()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// line counts the tokens of a line and reports whether it has a label.
func (v *vocabulary) line(b []byte) (labelled bool) {
	for i := 0; ; {
		start, end := nextToken(b, i)
		token := b[start:end]
		if len(token) == 0 || string(token) == endOfLine {
			v.add([]byte(endOfLine), false)
			return labelled
		}
		label := bytes.HasPrefix(token, []byte(LabelPrefix))
		v.add(token, label)
		labelled = labelled || label
		i = end
	}
}

func (v *vocabulary) add(token []byte, label bool) {
	v.tokens++
	h := hashToken(token)
	at := v.slot(h, token)
	if i := v.slots[at]; i > 0 {
		v.entries[i-1].count++
		return
	}
	v.entries = append(v.entries, entry{string(token), h, label, 1})
	v.slots[at] = int32(len(v.entries))
	if len(v.entries) > maxEntries {
		v.rarest++
		v.drop(v.rarest+1, v.rarest+1)
	}
	if 2*len(v.entries) > len(v.slots) {
		v.slots = make([]int32, 2*len(v.slots))
		v.index()
	}
}

func (v *vocabulary) slot(hash uint32, token []byte) uint32 {
	mask := uint32(len(v.slots) - 1)
	at := hash & mask
	for i := v.slots[at]; i > 0; i = v.slots[at] {
		if e := &v.entries[i-1]; e.hash == hash && e.token == string(token) {
			break
		}
		at = (at + 1) & mask
	}
	return at
}

func (v *vocabulary) index() {
	clear(v.slots)
	for i, e := range v.entries {
		v.slots[v.slot(e.hash, []byte(e.token))] = int32(i + 1)
	}
}

// drop removes words and labels with lower counts.
func (v *vocabulary) drop(words, labels int64) {
	v.entries = slices.DeleteFunc(v.entries, func(e entry) bool {
		return e.count < words && !e.label || e.count < labels && e.label
	})
	v.index()
}

// dictionary builds the dictionary from the frequent entries: words before labels, frequent entries first, and
// entries with equal counts in the order of their first occurrence.
func (v *vocabulary) dictionary(a *args, minLabel int) *dictionary {
	v.drop(int64(a.MinCount), int64(minLabel))
	slices.SortStableFunc(v.entries, func(x, y entry) int {
		switch {
		case x.label == y.label:
			return cmp.Compare(y.count, x.count)
		case y.label:
			return -1
		}
		return 1
	})
	d := &dictionary{args: a, tokens: v.tokens}
	for _, e := range v.entries {
		d.words = append(d.words, e.token)
		d.counts = append(d.counts, e.count)
		if !e.label {
			d.nwords++
		}
	}
	d.index()
	v.entries, v.slots = nil, nil
	return d
}
