package tokenfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"anneal/internal/fileio"
)

// megatron is the format of tools/preprocess_data.py --append-eod for Megatron-LM: train.bin with the ids, and
// train.idx with a header, the length (int32) and the byte offset (int64) of each sequence, and the sequences (int64)
// at which documents begin and the last one ends. A document is one sequence and ends in EOT. Ids are uint16 for
// vocabularies below 65,500, else int32.
var megatron = Format{
	Name: "megatron", Help: "train.bin and train.idx: one sequence per document, with end of text at its end",
	pattern: func(split string) string { return split + ".idx" },
	create: func(dir, split string, v Vocabulary) (Writer, error) {
		return createMegatron(filepath.Join(dir, split), v)
	},
	read: readMegatron,
}

const (
	megatronMagic  = "MMIDIDX\x00\x00"
	megatronHeader = 34
)

// megatronWidths are the bytes of each type code; 0 for types that ids cannot have.
var megatronWidths = []int{1: 1, 3: 2, 4: 4, 5: 8, 8: 2}

type megatronWriter struct {
	raw     *rawWriter
	path    string
	v       Vocabulary
	lengths []uint32 // held in memory: 4 bytes per document
}

func createMegatron(path string, v Vocabulary) (Writer, error) {
	width := 4
	if v.Size < 65500 {
		width = 2
	}
	raw, err := createRaw(path+".bin", width)
	return &megatronWriter{raw: raw, path: path, v: v}, err
}

func (w *megatronWriter) Write(document []uint32) error {
	w.raw.write(document...)
	w.lengths = append(w.lengths, uint32(len(document))+1)
	return w.raw.write(w.v.EOT)
}

func (w *megatronWriter) Close() error {
	if err := w.raw.close(); err != nil {
		return err
	}
	f, err := os.Create(w.path + ".idx")
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, bufferBytes)
	code := byte(4)
	if w.raw.width == 2 {
		code = 8
	}
	put := func(n uint64) { out.Write(binary.LittleEndian.AppendUint64(nil, n)) }
	out.WriteString(megatronMagic)
	put(1)
	out.WriteByte(code)
	put(uint64(len(w.lengths)))
	put(uint64(len(w.lengths)) + 1)
	for _, n := range w.lengths {
		out.Write(binary.LittleEndian.AppendUint32(nil, n))
	}
	at := uint64(0)
	for _, n := range w.lengths {
		put(at)
		at += uint64(n) * uint64(w.raw.width)
	}
	for i := range len(w.lengths) + 1 {
		put(uint64(i))
	}
	return errors.Join(out.Flush(), f.Sync(), f.Close())
}

// readMegatron reads path, an .idx, and the .bin beside it.
func readMegatron(path string, _ Vocabulary, d *documents) error {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	x, err := openMegatron(f)
	if err != nil {
		return err
	}
	bin, err := fileio.OpenRegular(strings.TrimSuffix(path, ".idx") + ".bin")
	if err != nil {
		return err
	}
	defer bin.Close()
	info, err := bin.Stat()
	if err != nil {
		return err
	}
	docEnd, sum := uint64(0), uint64(0)
	for i := range x.sequences {
		for i == docEnd { // the next document; documents without sequences are empty
			if err := d.cut(); err != nil {
				return err
			}
			next, err := x.documents.u64()
			if err == io.EOF {
				return fmt.Errorf("the list of documents ends at sequence %d of %d\n  restore the .idx from a copy",
					docEnd, x.sequences)
			}
			if err != nil {
				return err
			}
			if next < docEnd || next > x.sequences {
				return fmt.Errorf("a document ends at sequence %d of %d", next, x.sequences)
			}
			docEnd = next
		}
		length, err := x.lengths.u32()
		if err != nil {
			return err
		}
		at, err := x.offsets.u64()
		if err != nil {
			return err
		}
		size := uint64(length) * uint64(x.width)
		if at > uint64(info.Size()) || size > uint64(info.Size())-at {
			return fmt.Errorf("sequence %d has %d tokens from byte %d, but the .bin has %d bytes",
				i, length, at, info.Size())
		}
		if sum += size; sum > uint64(info.Size()) {
			return fmt.Errorf("sequences overlap: up to number %d they have %d bytes, but the .bin has %d",
				i, sum, info.Size())
		}
		if err := x.sequence(io.NewSectionReader(bin, int64(at), int64(size)), d); err != nil {
			return fmt.Errorf("sequence %d: %w", i, err)
		}
	}
	return d.cut()
}

// megatronIndex reads an .idx at three positions at once.
type megatronIndex struct {
	width, code                 int
	sequences                   uint64
	lengths, offsets, documents numbers
	buf                         []byte
	ids                         []uint32
}

func openMegatron(f *os.File) (*megatronIndex, error) {
	var h [megatronHeader]byte
	if _, err := io.ReadFull(f, h[:]); err != nil || string(h[:9]) != megatronMagic {
		return nil, errors.New("not the index of a Megatron data set: it does not start with MMIDIDX\n" +
			"  name the .idx; the .bin is read with it")
	}
	version, code := binary.LittleEndian.Uint64(h[9:]), int(h[17])
	sequences, docs := binary.LittleEndian.Uint64(h[18:]), binary.LittleEndian.Uint64(h[26:])
	if version != 1 {
		return nil, fmt.Errorf("unsupported index version %d; this version of anneal reads version 1", version)
	}
	if code >= len(megatronWidths) || megatronWidths[code] == 0 {
		return nil, fmt.Errorf("unsupported id type %d; supported are 1 (uint8), 3 (int16), 4 (int32), "+
			"5 (int64) and 8 (uint16)", code)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	limit := uint64(info.Size())
	if size := megatronHeader + 12*sequences + 8*docs; sequences > limit || docs > limit || docs < 1 ||
		size != limit && size+sequences != limit {
		return nil, fmt.Errorf("the header says %d sequences and %d documents, "+
			"which do not fit in the file of %d bytes\n  restore it from a copy", sequences, max(docs, 1)-1, limit)
	}
	part := func(from, n uint64) numbers {
		return numbers{bufio.NewReader(io.NewSectionReader(f, int64(from), int64(n)))}
	}
	x := &megatronIndex{
		width: megatronWidths[code], code: code, sequences: sequences,
		lengths: part(megatronHeader, 4*sequences), offsets: part(megatronHeader+4*sequences, 8*sequences),
		documents: part(megatronHeader+12*sequences, 8*docs), buf: make([]byte, bufferBytes),
	}
	if first, err := x.documents.u64(); err != nil || first != 0 {
		return nil, fmt.Errorf("the first document begins at sequence %d", first)
	}
	return x, nil
}

// sequence passes on the ids of one sequence.
func (x *megatronIndex) sequence(r io.Reader, d *documents) error {
	at := uint64(0)
	for {
		n, err := io.ReadFull(r, x.buf)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		x.ids = x.ids[:0]
		for b := x.buf[:n-n%x.width]; len(b) > 0; b = b[x.width:] {
			id := uint64(0)
			switch x.width {
			case 1:
				id = uint64(b[0])
			case 2:
				id = uint64(binary.LittleEndian.Uint16(b))
			case 4:
				id = uint64(binary.LittleEndian.Uint32(b))
			default:
				id = binary.LittleEndian.Uint64(b)
			}
			if id > 1<<31-1 || x.code == 3 && id > 1<<15-1 {
				return fmt.Errorf("token %d is negative or at least 2^31", at+uint64(len(x.ids)))
			}
			x.ids = append(x.ids, uint32(id))
		}
		if err := d.stream(x.ids, at); err != nil {
			return err
		}
		at += uint64(len(x.ids))
		if err != nil {
			return nil
		}
	}
}

// numbers reads little-endian numbers.
type numbers struct{ r *bufio.Reader }

func (n numbers) u32() (uint32, error) {
	var b [4]byte
	_, err := io.ReadFull(n.r, b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

func (n numbers) u64() (uint64, error) {
	var b [8]byte
	_, err := io.ReadFull(n.r, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}
