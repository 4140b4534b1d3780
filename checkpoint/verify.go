package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/internal/fileio"
	"anneal/safetensors"
)

// Fault is damage found in a checkpoint.
type Fault struct {
	Checkpoint string // name of its directory
	File       string
	Tensor     string // "" if it is not within a tensor
	Offset     int64  // start in the file of the damaged chunk (of at most 4 MiB) of the tensor; -1 if unknown
	Err        error
}

func (f *Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.Checkpoint, f.File)
	if f.Tensor != "" {
		fmt.Fprintf(&b, ", tensor %q", f.Tensor)
	}
	if f.Offset >= 0 {
		fmt.Fprintf(&b, ", offset %d", f.Offset)
	}
	return b.String() + ": " + f.Err.Error()
}

func (f *Fault) Unwrap() error { return f.Err }

// Verify reads every byte of every checkpoint under root, newest first, and returns the good ones and the first
// fault. It checks chunk and file checksums, sizes, and that the safetensors headers agree with the manifest. For a
// root without checkpoints it returns ErrNone.
func Verify(root string) ([]Info, error) {
	entries, err := List(root)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("checkpoint: %s: %w", root, ErrNone)
	}
	var good []Info
	for i := range entries {
		info, err := entries[i].verify(root)
		if err != nil && entries[i].retired(root) {
			continue
		}
		if err != nil {
			return good, err
		}
		good = append(good, info)
	}
	if len(good) == 0 {
		return Verify(root) // a writer has replaced them all meanwhile
	}
	return good, nil
}

// retired reports whether a writer has deleted the checkpoint since it was listed.
func (e *Entry) retired(root string) bool {
	_, err := os.Lstat(filepath.Join(root, e.Name))
	return errors.Is(err, fs.ErrNotExist)
}

func (e *Entry) verify(root string) (Info, error) {
	if e.Err != nil {
		return Info{}, e.Err
	}
	r := e.reader(root)
	for _, f := range e.manifest.Files {
		sha := sha256.New()
		if err := r.read(f, nil, func(_ string, p []byte) { sha.Write(p) }); err != nil {
			return Info{}, err
		}
		if got := hex.EncodeToString(sha.Sum(nil)); got != f.SHA256 {
			return Info{}, r.fault(f.Name, "", -1, fmt.Errorf("its sha256 is %s, but the manifest says %s", got, f.SHA256))
		}
		if err := r.checkHeader(f); err != nil {
			return Info{}, err
		}
	}
	return e.info(root)
}

// info adds the files that the manifest does not list.
func (e *Entry) info(root string) (Info, error) {
	info := e.Info
	files, err := os.ReadDir(filepath.Join(root, e.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return info, nil // a writer has deleted it since, but everything was read
	}
	if err != nil {
		return Info{}, fmt.Errorf("checkpoint: %w", err)
	}
	for _, d := range files {
		known := slices.ContainsFunc(e.manifest.Files, func(f fileEntry) bool { return f.Name == d.Name() })
		if !known && d.Name() != manifestName {
			info.Ignored = append(info.Ignored, d.Name())
		}
	}
	return info, nil
}

// reader reads the files of one checkpoint and verifies them.
type reader struct {
	dir, name string
	m         *manifest
	scratch   []byte // for bytes that nobody requested
}

func (e *Entry) reader(root string) *reader {
	return &reader{filepath.Join(root, e.Name), e.Name, e.manifest, make([]byte, 1<<20)}
}

func (r *reader) fault(file, tensor string, offset int64, err error) *Fault {
	return &Fault{r.name, file, tensor, offset, err}
}

// region is a range of a file up to end: a tensor, or ("") the bytes between tensors.
type region struct {
	tensor string
	end    int64
	dst    []byte // destination of its bytes; nil discards them
}

func (r *reader) regions(f fileEntry, dst map[string][]byte) []region {
	var list []region
	at := int64(0)
	for _, t := range r.m.placed(f.Name) {
		if t.Offset > at {
			list = append(list, region{end: t.Offset})
		}
		at = t.Offset + t.Size
		list = append(list, region{t.name, at, dst[t.name]})
	}
	if at < f.Size {
		list = append(list, region{end: f.Size, dst: dst[""]})
	}
	return list
}

// read reads a file once and checks every chunk. Tensors in dst are stored there, and each is called with every piece
// and the name of its tensor. A file without tensors goes to dst[""] as a whole. After an error the contents of dst
// are undefined.
func (r *reader) read(file fileEntry, dst map[string][]byte, each func(tensor string, p []byte)) error {
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
	at, crc := int64(0), uint32(0)
	for _, reg := range r.regions(file, dst) {
		for at < reg.end {
			n := min(reg.end-at, chunkBytes-at%chunkBytes)
			p := r.scratch[:min(n, int64(len(r.scratch)))]
			if reg.dst != nil {
				p = reg.dst[int64(len(reg.dst))-(reg.end-at):][:n]
			}
			if _, err := io.ReadFull(f, p); err != nil {
				return r.fault(file.Name, reg.tensor, at, err)
			}
			crc = crc32.Update(crc, castagnoli, p)
			if each != nil {
				each(reg.tensor, p)
			}
			at += int64(len(p))
			if at%chunkBytes != 0 && at != file.Size {
				continue
			}
			if i := (at - 1) / chunkBytes; file.CRC32C[i] != checksum(crc) {
				return r.blame(f, file, i, checksum(crc))
			}
			crc = 0
		}
	}
	return nil
}

func (r *reader) tensorAt(file string, offset int64) string {
	for _, t := range r.m.placed(file) {
		if t.Offset <= offset && offset < t.Offset+t.Size {
			return t.name
		}
	}
	return ""
}

// blame finds the damaged tensor in a damaged chunk, by the tensors' own checksums.
func (r *reader) blame(f *os.File, file fileEntry, chunk int64, got checksum) error {
	begin, end := chunk*chunkBytes, min((chunk+1)*chunkBytes, file.Size)
	err := fmt.Errorf("the chunk of bytes %d to %d has crc32c %08x, but the manifest says %08x",
		begin, end, uint32(got), uint32(file.CRC32C[chunk]))
	for _, t := range r.m.placed(file.Name) {
		if t.Offset >= end || t.Offset+t.Size <= begin {
			continue
		}
		sum := crc32.New(castagnoli)
		if _, rerr := io.Copy(sum, io.NewSectionReader(f, t.Offset, t.Size)); rerr != nil {
			return r.fault(file.Name, t.name, t.Offset, rerr)
		}
		if checksum(sum.Sum32()) != t.CRC32C {
			return r.fault(file.Name, t.name, max(begin, t.Offset), err)
		}
	}
	return r.fault(file.Name, "", begin, err)
}

// checkHeader returns an error unless a safetensors header agrees with the manifest.
func (r *reader) checkHeader(file fileEntry) error {
	if filepath.Ext(file.Name) != ".safetensors" {
		return nil
	}
	f, err := safetensors.Open(filepath.Join(r.dir, file.Name))
	if err != nil {
		return r.fault(file.Name, "", 0, err)
	}
	defer f.Close()
	placed := r.m.placed(file.Name)
	infos := slices.Clone(f.Tensors())
	slices.SortFunc(infos, func(a, b safetensors.Info) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Name, b.Name))
	})
	if len(placed) != len(infos) {
		return r.fault(file.Name, "", 0, fmt.Errorf("its header lists %d tensors, but the manifest %d", len(infos), len(placed)))
	}
	for i, t := range placed {
		info := infos[i]
		if info.Name != t.name || string(info.DType) != t.DType || !slices.Equal(info.Shape, t.Shape) || info.Offset != t.Offset {
			return r.fault(file.Name, t.name, t.Offset, errors.New("header and manifest disagree"))
		}
	}
	return nil
}
