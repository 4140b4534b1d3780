package tokenfile

import (
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// olmo is the format of `dolma tokens` for OLMo: part-0-00000.npy, ids only despite the name (no NumPy header), with
// EOT after each document, and part-0-00000.csv.gz with a row start,end,id,src,loc for each document. The reader
// splits at EOT and ignores the rows.
var olmo = Format{
	Name: "olmo", Help: "train/part-0-00000.npy and .csv.gz: ids only, end of text after each document",
	pattern: func(split string) string { return filepath.Join(split, "*.npy") },
	create: func(dir, split string, v Vocabulary) (Writer, error) {
		return createOLMo(filepath.Join(dir, split), v)
	},
	read: readFile,
}

type olmoWriter struct {
	raw  *rawWriter
	v    Vocabulary
	f    *os.File
	z    *gzip.Writer
	docs int
}

func createOLMo(dir string, v Vocabulary) (Writer, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	raw, err := createRaw(filepath.Join(dir, "part-0-00000.npy"), v.Width())
	if err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, "part-0-00000.csv.gz"))
	if err != nil {
		raw.close()
		return nil, err
	}
	return &olmoWriter{raw: raw, v: v, f: f, z: gzip.NewWriter(f)}, nil
}

func (w *olmoWriter) Write(document []uint32) error {
	start := w.raw.tokens
	w.raw.write(document...)
	if err := w.raw.write(w.v.EOT); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w.z, "%d,%d,%d,anneal,%d\n", start, w.raw.tokens, w.docs, w.docs)
	w.docs++
	return err
}

func (w *olmoWriter) Close() error {
	return errors.Join(w.raw.close(), w.z.Close(), w.f.Sync(), w.f.Close())
}
