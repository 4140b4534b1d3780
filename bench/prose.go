package bench

import (
	"bytes"
	"context"

	"anneal/corpus"
	"anneal/prepare"
)

// proseBytes is the least length of a document of prose.
const proseBytes = 4 << 10

// prose collects the comments of Go source into documents, similar to those of a crawl. It is the only prose that
// every machine with Go has.
func prose(ctx context.Context, source string, limit int64) (docs [][]byte, size int64, err error) {
	_, files, err := prepare.Text{Paths: []string{source},
		Options: corpus.Options{Extensions: []string{".go"}}}.Open(ctx)
	if err != nil {
		return nil, 0, err
	}
	var doc []byte
	for text, err := range files {
		if err != nil {
			return nil, 0, err
		}
		for line := range bytes.Lines(text) {
			if comment, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("// ")); ok {
				doc = append(append(doc, comment...), '\n')
			}
		}
		if len(doc) >= proseBytes {
			docs, size = append(docs, bytes.Clone(doc)), size+int64(len(doc))
			doc = doc[:0]
		}
		if size >= limit {
			break
		}
	}
	return docs, size, nil
}
