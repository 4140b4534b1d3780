package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"anneal/internal/fileio"
)

// reader reads the files of one checkpoint and verifies what it reads.
type reader struct {
	dir, name string
	m         *manifest
	chunk     []byte
	held      chunkOf // the verified chunk that is in chunk
	every     bool    // also check chunks that are not needed
}

// chunkOf is a chunk of a file, by its number. The zero value is none.
type chunkOf struct {
	file   string
	number int
}

func (e *Entry) reader(root string) *reader {
	return &reader{dir: filepath.Join(root, e.Name), name: e.Name, m: e.manifest,
		chunk: make([]byte, min(chunkBytes, e.Bytes))}
}

func (r *reader) fault(file, tensor string, offset int64, err error) *Fault {
	return &Fault{r.name, file, tensor, offset, err}
}

// want is a part of a tensor to read, and the memory for it.
type want struct {
	tensor string
	span
	dst    []byte
	remote Remote // destination of the bytes after dst; nil if they stay in dst
}

// batchBytes is the size of a batch of tensors in host memory on the way to a device; a larger tensor is a batch of
// its own.
const batchBytes = 64 << 20

// deliver fetches the wanted parts: into host memory all at once, into a device's memory batch by batch.
func (r *reader) deliver(wants []want) error {
	var here, apart []want
	for _, w := range wants {
		if w.remote == nil {
			here = append(here, w)
		} else {
			apart = append(apart, w)
		}
	}
	if err := r.fetch(here); err != nil {
		return err
	}
	r.every = false // every chunk is checked by now
	slices.SortStableFunc(apart, func(a, b want) int {
		x, y := r.m.Tensors[a.tensor].Pieces[0], r.m.Tensors[b.tensor].Pieces[0]
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Offset, y.Offset))
	})
	var buffer []byte
	for len(apart) > 0 {
		n, bytes := 0, int64(0)
		for n < len(apart) && (n == 0 || bytes+apart[n].size() <= batchBytes) {
			bytes += apart[n].size()
			n++
		}
		if int64(cap(buffer)) < bytes {
			buffer = make([]byte, bytes)
		}
		if err := r.send(apart[:n], buffer); err != nil {
			return err
		}
		apart = apart[n:]
	}
	return nil
}

// send fetches a batch into the buffer, and writes it to the device.
func (r *reader) send(batch []want, buffer []byte) error {
	for i := range batch {
		n := batch[i].size()
		batch[i].dst, buffer = buffer[:n:n], buffer[n:]
	}
	if err := r.fetch(batch); err != nil {
		return err
	}
	for _, w := range batch {
		if err := w.remote.Write(w.dst); err != nil {
			return fmt.Errorf("checkpoint: %s: tensor %q: %w", r.name, w.tensor, err)
		}
	}
	return nil
}

// source is a piece on disk, with the wanted parts of it.
type source struct {
	*piece
	span
	want *want
}

// fetch reads the wanted parts from the pieces that contain them. It reads and checks the chunks that it needs, or
// every chunk. After an error the contents of the memory are undefined.
func (r *reader) fetch(wants []want) error {
	byFile := map[string][]source{}
	for i := range wants {
		w := &wants[i]
		t := r.m.Tensors[w.tensor]
		for j := range t.Pieces {
			p := &t.Pieces[j]
			s, err := p.span(t.DType, t.Shape)
			if err != nil {
				return r.fault(p.File, w.tensor, p.Offset, err)
			}
			if m := s.meet(&w.span); m.size() > 0 {
				byFile[p.File] = append(byFile[p.File], source{p, s, w})
			}
		}
	}
	for _, f := range r.m.Files {
		sources := byFile[f.Name]
		if len(sources) == 0 && !r.every {
			continue
		}
		needed := func(begin, end int64) bool {
			if r.every {
				return true
			}
			for i := range sources {
				if m := sources[i].within(begin, end); m.size() > 0 {
					return true
				}
			}
			return false
		}
		err := r.read(f, needed, func(begin int64, chunk []byte) {
			for i := range sources {
				sources[i].copy(begin, chunk)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// within returns the wanted parts of the piece's bytes between offsets begin and end of the file.
func (s *source) within(begin, end int64) span {
	from, to := max(begin-s.Offset, 0), min(end-s.Offset, s.Size)
	if from >= to {
		return span{}
	}
	part := s.cut(from, to)
	return part.meet(&s.want.span)
}

// copy copies the wanted parts of the piece from the chunk that starts at offset begin of the file.
func (s *source) copy(begin int64, chunk []byte) {
	m := s.within(begin, begin+int64(len(chunk)))
	m.rows(&s.span, &s.want.span, func(inPiece, inWant, n int64) {
		copy(s.want.dst[inWant:inWant+n], chunk[s.Offset+inPiece-begin:])
	})
}

// state reads the text of state.json.
func (r *reader) state() (text []byte, err error) {
	for _, f := range r.m.Files {
		if f.Name == stateName {
			err = r.read(f, everything, func(_ int64, p []byte) { text = append(text, p...) })
		}
	}
	return text, err
}

// everything makes [reader.read] read a whole file.
func everything(begin, end int64) bool { return true }

// read reads and checks the chunks of a file that are needed, and calls use with each and its offset.
func (r *reader) read(file fileEntry, needed func(begin, end int64) bool, use func(begin int64, chunk []byte)) error {
	f, err := fileio.OpenRegular(filepath.Join(r.dir, file.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return r.fault(file.Name, "", -1, fmt.Errorf("it is missing: %w", fs.ErrNotExist))
	}
	if err != nil {
		return r.fault(file.Name, "", -1, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return r.fault(file.Name, "", -1, err)
	}
	if st.Size() != file.Size {
		at := min(st.Size(), file.Size)
		return r.fault(file.Name, r.tensorAt(file.Name, at), at,
			fmt.Errorf("it has %d bytes, but the manifest says %d", st.Size(), file.Size))
	}
	for i, want := range file.CRC32C {
		begin := int64(i) * chunkBytes
		end := min(begin+chunkBytes, file.Size)
		if !needed(begin, end) {
			continue
		}
		chunk, this := r.chunk[:end-begin], chunkOf{file.Name, i}
		if r.held == this { // small reads need the same chunk again
			use(begin, chunk)
			continue
		}
		r.held = chunkOf{}
		if _, err := f.ReadAt(chunk, begin); err != nil {
			return r.fault(file.Name, r.tensorAt(file.Name, begin), begin, err)
		}
		if got := checksum(crc32.Checksum(chunk, castagnoli)); got != want {
			err := fmt.Errorf("the chunk of bytes %d to %d has crc32c %08x, but the manifest says %08x",
				begin, end, uint32(got), uint32(want))
			return r.blame(f, file, begin, end, err)
		}
		r.held = this
		use(begin, chunk)
	}
	return nil
}

func (r *reader) tensorAt(file string, offset int64) string {
	for _, p := range r.m.pieces[file] {
		if p.Offset <= offset && offset < p.Offset+p.Size {
			return p.tensor
		}
	}
	return ""
}

// blame finds the damaged tensor in a damaged chunk, by the pieces' own checksums.
func (r *reader) blame(f *os.File, file fileEntry, begin, end int64, err error) error {
	for _, p := range r.m.pieces[file.Name] {
		if p.Offset >= end || p.Offset+p.Size <= begin {
			continue
		}
		sum := crc32.New(castagnoli)
		if _, rerr := io.Copy(sum, io.NewSectionReader(f, p.Offset, p.Size)); rerr != nil {
			return r.fault(file.Name, p.tensor, p.Offset, rerr)
		}
		if checksum(sum.Sum32()) != p.CRC32C {
			return r.fault(file.Name, p.tensor, max(begin, p.Offset), err)
		}
	}
	return r.fault(file.Name, "", begin, err)
}
