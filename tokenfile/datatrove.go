package tokenfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"anneal/internal/fileio"
)

// datatrove is the format of its DocumentTokenizer: 00000.ds with ids only, EOT after each document; 00000.ds.index
// with the end of each document as a uint64 token count; 00000.ds.metadata, text whose first line is "tokenizer|bytes
// per token".
var datatrove = Format{
	Name: "datatrove", Help: "train/00000.ds, .ds.index, .ds.metadata: ids only, end of text after each document, " +
		"an index of document ends",
	pattern: func(split string) string { return filepath.Join(split, "*.ds") },
	create: func(dir, split string, v Vocabulary) (Writer, error) {
		return createDatatrove(filepath.Join(dir, split, "00000.ds"), v)
	},
	read: readDatatrove,
}

type datatroveWriter struct {
	raw   *rawWriter
	path  string
	v     Vocabulary
	f     *os.File
	index *bufio.Writer
}

func createDatatrove(path string, v Vocabulary) (Writer, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	raw, err := createRaw(path, v.Width())
	if err != nil {
		return nil, err
	}
	f, err := os.Create(path + ".index")
	if err != nil {
		raw.close()
		return nil, err
	}
	return &datatroveWriter{raw, path, v, f, bufio.NewWriter(f)}, nil
}

func (w *datatroveWriter) Write(document []uint32) error {
	w.raw.write(document...)
	if err := w.raw.write(w.v.EOT); err != nil {
		return err
	}
	_, err := w.index.Write(binary.LittleEndian.AppendUint64(nil, w.raw.tokens))
	return err
}

func (w *datatroveWriter) Close() error {
	name := strings.NewReplacer("|", "_", "\n", "_").Replace(w.v.Name)
	meta := fmt.Sprintf("%s|%d\n%d\n%s", name, w.raw.width, w.raw.tokens, thousands(w.raw.tokens))
	return errors.Join(w.raw.close(), w.index.Flush(), w.f.Sync(), w.f.Close(),
		fileio.Write(w.path+".metadata", func(f io.Writer) error {
			_, err := io.WriteString(f, meta)
			return err
		}))
}

// thousands formats a count such as "1.2 M tokens".
func thousands(n uint64) string {
	for _, unit := range []struct {
		size uint64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "K"}} {
		if n >= unit.size {
			return fmt.Sprintf("%.1f %s tokens", float64(n)/float64(unit.size), unit.name)
		}
	}
	return fmt.Sprintf("%d tokens", n)
}

// readDatatrove splits documents by the index if it exists, otherwise at EOT. The width of ids comes from the
// metadata if they exist, otherwise from the vocabulary.
func readDatatrove(path string, v Vocabulary, d *documents) error {
	width, err := datatroveWidth(path+".metadata", v)
	if err != nil {
		return err
	}
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	index, err := fileio.OpenRegular(path + ".index")
	if errors.Is(err, os.ErrNotExist) {
		return readRaw(f, width, -1, d)
	}
	if err != nil {
		return err
	}
	defer index.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	in, ends := bufio.NewReaderSize(f, bufferBytes), bufio.NewReader(index)
	tokens, start := uint64(info.Size())/uint64(width), uint64(0)
	for {
		var b [8]byte
		if _, err := io.ReadFull(ends, b[:]); err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("%s.index: the file is truncated", filepath.Base(path))
		}
		end := binary.LittleEndian.Uint64(b[:])
		if end < start || end > tokens {
			return fmt.Errorf("%s.index: a document spans tokens %d to %d of %d",
				filepath.Base(path), start, end, tokens)
		}
		if err := readRaw(in, width, int64(end-start), d); err != nil {
			return err
		}
		if err := d.cut(); err != nil {
			return err
		}
		start = end
	}
	if start != tokens || info.Size()%int64(width) != 0 {
		return fmt.Errorf("the index ends at token %d, but the file has %d bytes at %d per token",
			start, info.Size(), width)
	}
	return nil
}

func datatroveWidth(path string, v Vocabulary) (int, error) {
	f, err := fileio.OpenRegular(path)
	if errors.Is(err, os.ErrNotExist) {
		return v.Width(), nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 4096))
	line, _, _ := strings.Cut(string(head), "\n")
	bar := strings.LastIndexByte(line, '|')
	size, ok := line[bar+1:], bar >= 0
	if width, err := strconv.Atoi(strings.TrimSpace(size)); ok && err == nil && (width == 2 || width == 4) {
		return width, nil
	}
	if ok {
		return 0, fmt.Errorf("%s: %q bytes per token, want 2 or 4", filepath.Base(path), size)
	}
	return v.Width(), nil
}
