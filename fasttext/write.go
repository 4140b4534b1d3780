package fasttext

import (
	"bufio"
	"encoding/binary"
	"io"

	"anneal/internal/fileio"
)

// Save writes the model to a file. It writes to a temporary name and renames the file when it is complete.
func (m *Model) Save(path string) error { return fileio.Write(path, m.Write) }

// Write writes the model in version 12 of fastText's format: .ftz if it is quantised, otherwise .bin.
func (m *Model) Write(to io.Writer) error {
	w := &writer{out: bufio.NewWriterSize(to, 1<<16)}
	w.values(int32(fileMagic), int32(fileVersion), m.args)
	w.dictionary(m.dict, len(m.labels))
	w.values(m.Quantised())
	w.matrix(&m.input)
	w.values(m.output.codes != nil)
	w.matrix(&m.output)
	return w.out.Flush()
}

// writer writes little-endian. Flush returns the first error.
type writer struct {
	out *bufio.Writer
	buf []byte
}

func (w *writer) values(vs ...any) {
	for _, v := range vs {
		w.buf, _ = binary.Append(w.buf[:0], binary.LittleEndian, v)
		w.out.Write(w.buf)
	}
}

func (w *writer) floats(v []float32) {
	for ; len(v) > 0; v = v[min(len(v), 4096):] {
		w.values(v[:min(len(v), 4096)])
	}
}

func (w *writer) dictionary(d *dictionary, labels int) {
	pruned := int64(-1)
	if d.pruned != nil {
		pruned = int64(len(d.pruned.order))
	}
	w.values(int32(len(d.words)), int32(d.nwords), int32(labels), d.tokens, pruned)
	for i, word := range d.words {
		w.out.WriteString(word)
		w.values(byte(0), d.counts[i], i >= d.nwords)
	}
	if d.pruned != nil {
		for _, key := range d.pruned.order {
			w.values(key, d.pruned.find(key))
		}
	}
}

func (w *writer) matrix(m *matrix) {
	if m.codes == nil {
		w.values(int64(m.rows), int64(m.cols))
		w.floats(m.dense)
		return
	}
	w.values(m.normCodes != nil, int64(m.rows), int64(m.cols), int32(len(m.codes)))
	w.out.Write(m.codes)
	w.quantiser(m.cols, m.parts)
	if m.normCodes != nil {
		w.out.Write(m.normCodes)
		w.quantiser(1, []part{{0, 1, m.norms}})
	}
}

func (w *writer) quantiser(dim int, parts []part) {
	w.values(int32(dim), int32(len(parts)), int32(parts[0].width), int32(parts[len(parts)-1].width))
	for _, p := range parts {
		w.floats(p.centroids)
	}
}
