package tokenfile

import (
	"path/filepath"

	"anneal/internal/fileio"
)

// nanoGPT is the format of its data/*/prepare.py: little-endian uint16 only, with EOT after each document.
// Vocabularies above 65,536 use uint32, which nanoGPT itself cannot read.
var nanoGPT = Format{
	Name: "nanogpt", Help: "train.bin and val.bin: ids only, end of text after each document",
	pattern: func(split string) string { return split + ".bin" },
	create: func(dir, split string, v Vocabulary) (Writer, error) {
		w, err := createRaw(filepath.Join(dir, split+".bin"), v.Width())
		return &nanoWriter{w, v.EOT}, err
	},
	read: readFile,
}

type nanoWriter struct {
	raw *rawWriter
	eot uint32
}

func (w *nanoWriter) Write(document []uint32) error {
	w.raw.write(document...)
	return w.raw.write(w.eot)
}

func (w *nanoWriter) Close() error { return w.raw.close() }

// readFile reads a file of ids only.
func readFile(path string, v Vocabulary, d *documents) error {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return readRaw(f, v.Width(), -1, d)
}
