package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/safetensors"
)

// Fault is damage found in a checkpoint.
type Fault struct {
	Checkpoint string // name of its directory
	File       string
	Tensor     string // "" if the damage is not within a tensor
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

// Verify reads every byte of every checkpoint under root, newest first, and returns the undamaged ones and the first
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
		if err := r.read(f, everything, func(_ int64, p []byte) { sha.Write(p) }); err != nil {
			return Info{}, err
		}
		if got := hex.EncodeToString(sha.Sum(nil)); got != f.SHA256 {
			return Info{}, r.fault(f.Name, "", -1, fmt.Errorf("its sha256 is %s, but the manifest says %s",
				got, f.SHA256))
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
	placed := r.m.pieces[file.Name]
	infos := slices.Clone(f.Tensors())
	slices.SortFunc(infos, func(a, b safetensors.Info) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Name, b.Name))
	})
	if len(placed) != len(infos) {
		return r.fault(file.Name, "", 0, fmt.Errorf("its header lists %d pieces of tensors, but the manifest %d",
			len(infos), len(placed)))
	}
	for i, p := range placed {
		info, t := infos[i], r.m.Tensors[p.tensor]
		name, shape := p.header(p.tensor, t.Shape)
		if info.Name != name || string(info.DType) != t.DType || !slices.Equal(info.Shape, shape) ||
			info.Offset != p.Offset {
			return r.fault(file.Name, p.tensor, p.Offset, errors.New("header and manifest disagree"))
		}
	}
	return nil
}
