package fasttext

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"anneal/internal/fileio"
)

const (
	fileMagic   = 793712314
	fileVersion = 12
)

// Load reads a model file, .bin or .ftz.
func Load(path string) (*Model, error) {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m, err := Read(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Read reads a model of at most size bytes. It compares every count in the file with the bytes that remain before it
// allocates: a model takes at most 20 bytes of memory per byte of file.
func Read(in io.Reader, size int64) (*Model, error) {
	r := &reader{in: bufio.NewReaderSize(in, 1<<16), left: size}
	m := r.model()
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// reader keeps the first error. After an error it returns empty values.
type reader struct {
	in   *bufio.Reader
	left int64
	err  error
	buf  [1 << 13]byte
}

var errTruncated = errors.New("the model file is truncated\n  copy or download it again")

func (r *reader) fail(format string, a ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("not a usable fastText model: "+format, a...)
	}
}

// holds reports whether the rest of the file can hold n items of the given size.
func (r *reader) holds(n, size int64) bool {
	if r.err == nil && (n < 0 || n > r.left/size) {
		r.err = errTruncated
	}
	return r.err == nil
}

func (r *reader) fill(b []byte) {
	if !r.holds(int64(len(b)), 1) {
		return
	}
	if _, err := io.ReadFull(r.in, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errTruncated
		}
		r.err = err
	}
	r.left -= int64(len(b))
}

func (r *reader) value(v any) {
	b := r.buf[:binary.Size(v)]
	if r.fill(b); r.err == nil {
		binary.Decode(b, binary.LittleEndian, v)
	}
}

func (r *reader) int32() (v int32) { r.value(&v); return v }
func (r *reader) int64() (v int64) { r.value(&v); return v }

func (r *reader) flag() bool {
	var b [1]byte
	if r.fill(b[:]); b[0] > 1 {
		r.fail("a flag has the value %d, want 0 or 1", b[0])
	}
	return b[0] == 1
}

// floats reads n numbers. They must be finite and small enough that sums stay finite.
func (r *reader) floats(n int64) []float32 {
	if !r.holds(n, 4) {
		return nil
	}
	v := make([]float32, n)
	for at := 0; at < len(v) && r.err == nil; {
		b := r.buf[:min(len(r.buf), 4*(len(v)-at))]
		r.fill(b)
		for ; len(b) > 0; b = b[4:] {
			x := math.Float32frombits(binary.LittleEndian.Uint32(b))
			if !(x >= -maxWeight && x <= maxWeight) {
				r.fail("a weight is %v, which training never produces", x)
				return nil
			}
			v[at] = x
			at++
		}
	}
	return v
}

func (r *reader) bytes(n int64) []byte {
	if !r.holds(n, 1) {
		return nil
	}
	b := make([]byte, n)
	r.fill(b)
	return b
}

func (r *reader) model() *Model {
	magic, version := r.int32(), r.int32()
	switch {
	case r.err != nil && magic != fileMagic:
		r.err = nil
		fallthrough
	case r.err == nil && magic != fileMagic:
		r.fail("its first bytes belong to another format\n  try a .bin or .ftz file written by fastText or `anneal data classifier train`")
	case r.err == nil && (version < 11 || version > fileVersion):
		r.fail("unsupported version %d; this version of anneal reads 11 and %d", version, fileVersion)
	}
	var a args
	if r.value(&a); r.err != nil {
		return nil
	}
	if version == 11 {
		a.MaxN = 0 // supervised models of that version had no character n-grams
	}
	if err := a.check(); err != nil {
		r.fail("%w", err)
		return nil
	}
	d := r.dictionary(&a)
	quantised := r.flag()
	input := r.matrix(quantised)
	qout := r.flag()
	output := r.matrix(quantised && qout)
	if r.err != nil {
		return nil
	}
	m := newModel(a, d, input, output)
	d.args = &m.args
	r.check(m)
	return m
}

func (r *reader) dictionary(a *args) *dictionary {
	size, nwords, nlabels := r.int32(), r.int32(), r.int32()
	d := &dictionary{args: a, nwords: int(nwords), tokens: r.int64()}
	npruned := r.int64()
	if !r.holds(int64(size), 10) {
		return nil
	}
	if nwords < 0 || nlabels < 1 || int64(nwords)+int64(nlabels) != int64(size) {
		r.fail("its dictionary has %d entries, %d words and %d labels", size, nwords, nlabels)
		return nil
	}
	var names strings.Builder
	ends := make([]int, 0, size)
	d.counts = make([]int64, 0, size)
	for i := range int(size) {
		r.name(&names)
		ends = append(ends, names.Len())
		d.counts = append(d.counts, r.int64())
		if label := r.flag(); label != (i >= int(nwords)) {
			r.fail("the words and labels of its dictionary are not in order")
		}
		if n := d.counts[i]; n < 0 || n >= manyTokens {
			r.fail("a word has the count %d", n)
		}
		if r.err != nil {
			return nil
		}
	}
	all, start := names.String(), 0
	d.words = make([]string, size)
	for i, end := range ends {
		d.words[i] = all[start:end]
		start = end
	}
	d.index()
	if npruned >= 0 {
		if !r.holds(npruned, 8) {
			return nil
		}
		d.pruned = newPrunedGrams(int(npruned))
		for range npruned {
			key, value := r.int32(), r.int32()
			if key < 0 || value < 0 {
				r.fail("the n-gram with hash bucket %d has the row %d", key, value)
			}
			if r.err != nil {
				return nil
			}
			d.pruned.set(key, value)
		}
	}
	return d
}

// name reads a string that ends with a zero byte.
func (r *reader) name(to *strings.Builder) {
	for r.err == nil {
		piece, err := r.in.ReadSlice(0)
		if r.left -= int64(len(piece)); r.left < 0 {
			r.err = errTruncated
		}
		switch {
		case err == nil:
			to.Write(piece[:len(piece)-1])
			return
		case errors.Is(err, bufio.ErrBufferFull):
			to.Write(piece)
		case errors.Is(err, io.EOF):
			r.err = errTruncated
		default:
			r.err = err
		}
	}
}

func (r *reader) matrix(quantised bool) matrix {
	if !quantised {
		m := matrix{rows: int(r.int64()), cols: int(r.int64())}
		if r.shape(m) && r.holds(int64(m.rows), 4*int64(m.cols)) {
			m.dense = r.floats(int64(m.rows) * int64(m.cols))
		}
		return m
	}
	coded := r.flag()
	m := matrix{rows: int(r.int64()), cols: int(r.int64())}
	size := r.int32()
	if !r.shape(m) {
		return matrix{}
	}
	m.codes = r.bytes(int64(size))
	m.parts = r.quantiser(m.cols)
	if r.err == nil && int64(size) != int64(m.rows)*int64(len(m.parts)) {
		r.fail("%d codes for %d rows of %d parts", size, m.rows, len(m.parts))
	}
	if coded {
		m.normCodes = r.bytes(int64(m.rows))
		if p := r.quantiser(1); r.err == nil {
			m.norms = p[0].centroids
		}
	}
	return m
}

func (r *reader) shape(m matrix) bool {
	if r.err == nil && (m.rows < 0 || m.cols < 1 || m.cols > maxDim || int64(m.rows) > math.MaxInt32) {
		r.fail("a matrix has %d rows and %d columns", m.rows, m.cols)
	}
	return r.err == nil
}

// quantiser reads the centroids for the codes of rows of dim numbers.
func (r *reader) quantiser(dim int) []part {
	var head struct{ Dim, Parts, Width, LastWidth int32 }
	if r.value(&head); r.err != nil {
		return nil
	}
	want := head
	want.Dim, want.Width = int32(dim), max(head.Width, 1)
	want.Parts = (want.Dim + want.Width - 1) / want.Width
	want.LastWidth = want.Dim - (want.Parts-1)*want.Width
	if head != want || head.Width > int32(dim) {
		r.fail("rows of %d columns are coded as %d parts of %d columns and a last one of %d", dim, head.Parts, head.Width, head.LastWidth)
		return nil
	}
	all := r.floats(int64(dim) * centroids)
	if r.err != nil {
		return nil
	}
	parts := make([]part, head.Parts)
	for i := range parts {
		p := part{column: i * int(head.Width), width: int(head.Width)}
		if i == len(parts)-1 {
			p.width = int(head.LastWidth)
		}
		p.centroids = all[centroids*p.column:][:centroids*p.width]
		parts[i] = p
	}
	return parts
}

// check checks the parts of a model against each other.
func (r *reader) check(m *Model) {
	a, d := m.args, m.dict
	need := int64(d.nwords)
	switch {
	case d.pruned == nil:
		need += int64(a.Bucket)
	default:
		for _, key := range d.pruned.order {
			need = max(need, int64(d.nwords)+int64(d.pruned.find(key))+1)
		}
	}
	switch {
	case d.pruned != nil && !m.Quantised():
		r.fail("n-grams are pruned from rows that are not quantised\n  try a newer copy of the model: versions before 2017 had this bug")
	case m.input.cols != int(a.Dim) || m.output.cols != int(a.Dim):
		r.fail("vectors have %d dimensions, but the matrices have %d and %d columns", a.Dim, m.input.cols, m.output.cols)
	case int64(m.input.rows) < need:
		r.fail("%d rows, but words and n-grams need %d", m.input.rows, need)
	case m.output.rows != len(m.labels):
		r.fail("%d rows for %d labels", m.output.rows, len(m.labels))
	}
}
