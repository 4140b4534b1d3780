package tokenfile

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/internal/fileio"
)

// Vocabulary describes the tokens for a format.
type Vocabulary struct {
	Size int    // ids are below it
	EOT  uint32 // ends, or begins, each document
	Name string // of the tokenizer, for formats that store it
}

// Width returns the bytes of an id, for formats that do not specify it: 2 up to 65,536 ids, else 4.
func (v Vocabulary) Width() int {
	if v.Size <= 1<<16 {
		return 2
	}
	return 4
}

// Writer writes the documents of one split in order. The file is complete after Close. An id that the vocabulary does
// not have, or EOT in a document, is an error: the file would say something else.
type Writer interface {
	Write(document []uint32) error
	Close() error
}

// A Reader yields the documents of files in order, without EOT. It reuses the slices. An error ends the sequence and
// names the file and the position.
type Reader = iter.Seq2[[]uint32, error]

// Format is a layout of token files.
type Format struct {
	Name string
	Help string // one line

	// create creates the files of a split ("train", "val") in an existing directory.
	create func(dir, split string, v Vocabulary) (Writer, error)
	// read reads one file and passes on its documents.
	read func(path string, v Vocabulary, d *documents) error
	// pattern returns a pattern for the files of a split in a directory.
	pattern func(split string) string
}

// Formats lists all formats.
var Formats = []Format{nanoGPT, llmC, megatron, olmo, datatrove}

// Named returns the format with the given name.
func Named(name string) (Format, error) {
	for _, f := range Formats {
		if f.Name == name {
			return f, nil
		}
	}
	var names []string
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return Format{}, fmt.Errorf("unknown format %q of token files\n  try one of %s", name, strings.Join(names, ", "))
}

// Create creates the files of a split in dir, which it creates if needed.
func (f Format) Create(dir, split string, v Vocabulary) (Writer, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	w, err := f.create(dir, split, v)
	if err != nil {
		return nil, err
	}
	return &checkedWriter{Writer: w, v: v}, nil
}

// checkedWriter checks the ids of documents before they are cut to the width of the file.
type checkedWriter struct {
	Writer
	v         Vocabulary
	documents int
}

func (w *checkedWriter) Write(document []uint32) error {
	for i, id := range document {
		switch {
		case uint64(id) >= uint64(max(w.v.Size, 0)):
			return fmt.Errorf("document %d: token %d has id %d, but the vocabulary has %d tokens\n"+
				"  use the size of the tokenizer that made the ids", w.documents, i, id, w.v.Size)
		case id == w.v.EOT:
			return fmt.Errorf("document %d: token %d is the end-of-text token %d, which a document cannot hold\n"+
				"  write what comes before and after it as two documents", w.documents, i, id)
		}
	}
	w.documents++
	return w.Writer.Write(document)
}

// Find returns the files of a split in dir, sorted, with the names that Create uses; none if there are none.
func (f Format) Find(dir, split string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(escape(dir), f.pattern(split)))
	slices.Sort(paths)
	return paths, err
}

// About estimates the number of tokens in files from their sizes, for an ETA.
func (f Format) About(paths []string, v Vocabulary) uint64 {
	size := int64(0)
	for _, path := range paths {
		if name, index := strings.CutSuffix(path, ".idx"); index {
			path = name + ".bin"
		}
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	return uint64(size) / uint64(v.Width())
}

// escape prevents characters of a directory's name from being read as a pattern.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// Read reads files as one stream: a document may start in one file and end in the next, if the format allows it. If
// an index separates documents, Read counts in unended those that do not end in EOT: if all of them do, the files
// were made without EOT, or with another tokenizer.
func (f Format) Read(paths []string, v Vocabulary, unended *uint64) Reader {
	return func(yield func([]uint32, error) bool) {
		d := &documents{v: v, yield: yield, unended: unended}
		for _, path := range paths {
			d.path = path
			if err := f.read(path, v, d); err != nil {
				if !errors.Is(err, errStop) {
					yield(nil, fmt.Errorf("%s: %w", path, fileio.Cause(err)))
				}
				return
			}
		}
		if err := d.end(); err != nil && !errors.Is(err, errStop) {
			yield(nil, fmt.Errorf("%s: %w", d.path, err))
		}
	}
}

// errStop means that the caller wants no more documents.
var errStop = errors.New("stop")

// longestDocument limits memory: a stream without EOT has another format than expected.
const longestDocument = 1 << 26

// documents splits tokens into documents and passes them on.
type documents struct {
	v     Vocabulary
	yield func([]uint32, error) bool
	path  string
	doc   []uint32

	unended *uint64

	buf []byte // of readRaw
	ids []uint32
}

// stream adds tokens; at is the position of the first, for messages. EOT ends a document unless it is empty.
func (d *documents) stream(ids []uint32, at uint64) error {
	for i, id := range ids {
		switch {
		case id == d.v.EOT:
			if err := d.end(); err != nil {
				return err
			}
		case int64(id) >= int64(d.v.Size):
			return fmt.Errorf("token %d has id %d, but the tokenizer has %d tokens\n"+
				"  pass the tokenizer that the file was made with", at+uint64(i), id, d.v.Size)
		case len(d.doc) >= longestDocument:
			return fmt.Errorf("no end-of-text token (%d) in the %d tokens before token %d\n"+
				"  pass the tokenizer that the file was made with", d.v.EOT, len(d.doc), at+uint64(i))
		default:
			d.doc = append(d.doc, id)
		}
	}
	return nil
}

// cut ends a document at a position given by an index.
func (d *documents) cut() error {
	if len(d.doc) > 0 {
		*d.unended++
	}
	return d.end()
}

// end passes the document on.
func (d *documents) end() error {
	if len(d.doc) == 0 {
		return nil
	}
	if !d.yield(d.doc, nil) {
		return errStop
	}
	d.doc = d.doc[:0]
	return nil
}
