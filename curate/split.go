package curate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"anneal/corpus"
)

// split is a run of files that is done as one: as many as make splitBytes on disk, or one that is larger.
type split struct {
	first, files int // ordinals of the files
	paths        []string
	size         int64
}

// splitBytes is a variable for tests.
var splitBytes int64 = 16 << 20

func splitFiles(r *corpus.Reader) (splits []split) {
	for i, path := range r.Files() {
		size := r.FileSize(i)
		last := len(splits) - 1
		if last < 0 || splits[last].size+size > splitBytes {
			splits = append(splits, split{first: i})
			last++
		}
		s := &splits[last]
		s.files++
		s.paths = append(s.paths, path)
		s.size += size
	}
	return splits
}

// identity is a hash over the paths, sizes, times and edges of the files: whether a split is as it was when it was done.
func (s split) identity() string {
	h := sha256.New()
	buf := make([]byte, 64<<10)
	for _, path := range s.paths {
		fmt.Fprintf(h, "%q ", path)
		f, err := os.Open(path)
		if err != nil {
			fmt.Fprintln(h, "unreadable")
			continue
		}
		if info, err := f.Stat(); err == nil {
			fmt.Fprintln(h, info.Size(), info.ModTime().UnixNano())
			n, _ := io.ReadFull(f, buf)
			h.Write(buf[:n])
			n, _ = f.ReadAt(buf, max(0, info.Size()-int64(len(buf))))
			h.Write(buf[:n])
		}
		f.Close()
	}
	return hex.EncodeToString(h.Sum(nil))
}
