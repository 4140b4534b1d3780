package corpus

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"

	"anneal/internal/parquet"
)

// Split is a share of the input that can be read independently: some whole files, or a part of one file. All splits in
// order deliver the same documents as the whole Reader, with the same File and Offset. Index counts within the part of
// a file, so that (File, Part, Index) orders all documents as they are read.
type Split struct {
	First, Files int   // ordinals of the files
	Part         int   // ordinal of this part of the file; 0 for whole files
	Size         int64 // bytes on disk, about

	r    *Reader
	part part
}

// part is what a split reads of a file. A line or piece belongs to the part in which it begins, so neighbouring parts
// agree without reading each other's bytes.
//
//	plain and compressed JSON lines: lines that begin in (at, end] of the content; in the first part, also at 0
//	plain text: the pieces of the sections that begin at the multiples of the section size in [at, end)
//	parquet: row groups from to to-1, of which the first begins with row at
type part struct {
	from, to int64 // bytes on disk, where a decompressor can start; parquet: row groups
	at, end  int64 // bytes of content; parquet: rows
	bytes    int64 // parquet: its share of the bytes on disk
}

var whole = part{to: math.MaxInt64, end: math.MaxInt64}

// Splits cuts the input into splits of about size bytes on disk (16 MiB if it is 0). They depend on the files, Options
// and size alone. Small files are joined to runs. A larger file is cut if that is possible without reading it: plain
// text and JSON lines anywhere; JSON lines under zstd at the beginnings of frames, if all frames before state the
// length of their content; JSON lines under gzip at the beginnings of BGZF blocks; parquet between row groups. Other
// files are one split.
//
// A damaged file may yield more in splits than as a whole, because splits after the damage are read independently.
func (r *Reader) Splits(size int64) []Split {
	if size <= 0 {
		size = 16 << 20
	}
	var splits []Split
	joinable := false // whether the last one is a run of whole files
	for i, onDisk := range r.sizes {
		if parts := r.parts(i, size); len(parts) > 1 {
			for n, p := range parts {
				onPart := min(p.to, onDisk) - p.from
				if p.bytes > 0 {
					onPart = p.bytes
				}
				splits = append(splits, Split{First: i, Files: 1, Part: n, Size: onPart, r: r, part: p})
			}
			joinable = false
			continue
		}
		if last := len(splits) - 1; joinable && splits[last].Size+onDisk <= size {
			splits[last].Files++
			splits[last].Size += onDisk
			continue
		}
		splits = append(splits, Split{First: i, Files: 1, Size: onDisk, r: r, part: whole})
		joinable = true
	}
	return splits
}

// Open returns a Reader of the split, without the listing; a split need not hold a document. Rejects go to onReject,
// which may be nil. The splits of a Reader may be read concurrently.
func (s Split) Open(onReject func(Reject)) *Reader {
	end, opt := s.First+s.Files, s.r.opt
	opt.OnReject = onReject
	return &Reader{
		opt: opt, paths: s.r.paths, files: s.r.files[s.First:end], sizes: s.r.sizes[s.First:end], size: s.Size,
		first: s.First, split: true, part: s.part,
	}
}

// Identity is a hash of the split and of the paths, sizes, times and edges of its files. It tells whether a finished
// split has changed.
func (s Split) Identity() string {
	h := sha256.New()
	fmt.Fprintln(h, s.part)
	buf := make([]byte, 64<<10)
	for _, path := range s.r.files[s.First : s.First+s.Files] {
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

// parts cuts a file into parts of about size bytes. A file that cannot be read or understood stays whole; reading it
// says why.
func (r *Reader) parts(i int, size int64) []part {
	onDisk, kind := r.sizes[i], kindOf(r.files[i])
	if onDisk < size+size/2 || !kind.isRead() {
		return nil
	}
	f, err := os.Open(r.files[i])
	if err != nil {
		return nil
	}
	defer f.Close()
	switch {
	case kind.format == linesFile && kind.compression == "":
		return everyBytes(onDisk, size)
	case kind.format == linesFile:
		if kind.ext == ".json" && !r.looksLikeLines(f, kind) {
			return nil
		}
		return entries(f, onDisk, size, kind.next())
	case kind.format == textFile && kind.compression == "":
		head := make([]byte, min(onDisk, int64(r.opt.MaxDocument)+1))
		if _, err := f.ReadAt(head, 0); err != nil || r.opt.isShort(head, onDisk) {
			return nil
		}
		if reason, _ := judge(bytes.TrimPrefix(head, bom)); reason != "" {
			return nil // keep it whole, because its parts could not detect this
		}
		section := r.opt.section()
		return everyBytes(onDisk, (size+section-1)/section*section)
	case kind.format == parquetFile:
		p, err := parquet.Open(f, onDisk, r.opt.TextField, false)
		if err != nil {
			return nil
		}
		return rowGroups(p.Groups, onDisk, size)
	}
	return nil
}

// rowGroups makes runs of row groups that have size bytes of the text column.
func rowGroups(groups []parquet.Group, onDisk, size int64) []part {
	var parts []part
	var total, before, row int64
	for _, g := range groups {
		total += g.Bytes
	}
	p := part{}
	var column int64
	for i, g := range groups {
		column += g.Bytes
		row += g.Rows
		if i == len(groups)-1 || column-before+groups[i+1].Bytes/2 >= size {
			p.to, p.end = int64(i+1), row
			p.bytes = share(onDisk, column, total) - share(onDisk, before, total)
			parts = append(parts, p)
			p, before = part{from: p.to, at: row}, column
		}
	}
	return parts
}

// share returns n/total of whole.
func share(whole, n, total int64) int64 {
	return int64(float64(whole) * float64(n) / float64(max(total, 1)))
}

// everyBytes cuts a plain file at the multiples of size.
func everyBytes(onDisk, size int64) []part {
	parts := []part{whole}
	for at := size; onDisk-at >= size/2; at += size {
		parts = cutAt(parts, at, at)
	}
	return parts
}

// cutAt ends the last part and begins another.
func cutAt(parts []part, onDisk, content int64) []part {
	last := &parts[len(parts)-1]
	last.to, last.end = onDisk, content
	return append(parts, part{from: onDisk, to: math.MaxInt64, at: content, end: math.MaxInt64})
}

// looksLikeLines looks at the first content of a compressed file.
func (r *Reader) looksLikeLines(f *os.File, k kind) bool {
	src := &bounded{disk: &meter{f: f, total: new(atomic.Int64)}, ratio: int64(r.opt.MaxRatio)}
	if src.open(k) != nil {
		return false
	}
	defer src.Close()
	head, _ := bufio.NewReaderSize(src, peekBytes).Peek(peekBytes)
	return k.jsonLines(head)
}
