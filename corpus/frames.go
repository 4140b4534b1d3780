package corpus

import (
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/zstd"
)

// entries returns parts of a compressed file, each of about size bytes, that begin where a decompressor can start.
// next returns the size of the frame at an offset, on disk and decompressed; it reads headers only. If it cannot tell,
// the rest of the file is the last part.
func entries(f io.ReaderAt, onDisk, size int64, next func(w *window, at int64) (disk, content int64, ok bool)) []part {
	w := &window{r: f}
	parts := []part{whole}
	var at, content int64
	for onDisk-at >= size/2 {
		d, c, ok := next(w, at)
		if !ok || content > 1<<60 {
			break
		}
		if at-parts[len(parts)-1].from >= size {
			parts = cutAt(parts, at, content)
		}
		at, content = at+d, content+c
	}
	return parts
}

// next returns the function that entries needs.
func (k kind) next() func(w *window, at int64) (disk, content int64, ok bool) {
	if k.compression == ".zst" {
		return zstdFrame
	}
	return bgzfBlock
}

// zstdFrame measures a frame (RFC 8878, section 3.1) by the sizes in the headers of its blocks.
func zstdFrame(w *window, at int64) (disk, content int64, ok bool) {
	var h zstd.Header
	if h.Decode(w.at(at, zstd.HeaderMaxSize)) != nil {
		return 0, 0, false
	}
	if h.Skippable {
		return int64(h.HeaderSize) + int64(h.SkippableSize), 0, true
	}
	if !h.HasFCS || h.FrameContentSize > 1<<60 {
		return 0, 0, false
	}
	disk = int64(h.HeaderSize)
	for {
		b := w.at(at+disk, 3)
		if len(b) < 3 {
			return 0, 0, false
		}
		head := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16 // last block: 1 bit; type: 2; size: 21
		disk += 3
		switch head >> 1 & 3 {
		case 1: // one byte, repeated
			disk++
		case 3:
			return 0, 0, false
		default:
			disk += head >> 3
		}
		if head&1 == 1 {
			break
		}
	}
	if h.HasCheckSum {
		disk += 4
	}
	return disk, int64(h.FrameContentSize), true
}

// bgzfBlock measures a gzip member (RFC 1952) that states its size in an extra field "BC", as in BGZF.
func bgzfBlock(w *window, at int64) (disk, content int64, ok bool) {
	const extra = 4
	b := w.at(at, 12)
	if len(b) < 12 || b[0] != 0x1f || b[1] != 0x8b || b[2] != 8 || b[3]&extra == 0 {
		return 0, 0, false
	}
	fields := w.at(at+12, min(int(binary.LittleEndian.Uint16(b[10:])), len(w.buf)))
	for len(fields) >= 4 {
		n := int(binary.LittleEndian.Uint16(fields[2:]))
		if len(fields) < 4+n {
			break
		}
		if fields[0] == 'B' && fields[1] == 'C' && n == 2 {
			disk = int64(binary.LittleEndian.Uint16(fields[4:])) + 1
			size := w.at(at+disk-4, 4)
			if disk < 18 || len(size) < 4 {
				return 0, 0, false
			}
			return disk, int64(binary.LittleEndian.Uint32(size)), true
		}
		fields = fields[4+n:]
	}
	return 0, 0, false
}

// window reads small pieces of a file, mostly forwards, in few calls.
type window struct {
	r    io.ReaderAt
	buf  [4096]byte
	from int64
	n    int
}

// at returns the n bytes at an offset, fewer where the file ends or cannot be read. They are valid until the next
// call.
func (w *window) at(offset int64, n int) []byte {
	if offset < w.from || offset+int64(n) > w.from+int64(w.n) {
		w.from = offset
		w.n, _ = w.r.ReadAt(w.buf[:], offset)
	}
	i := int(offset - w.from)
	return w.buf[min(i, w.n):min(i+n, w.n)]
}
