package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	singleName = "model.safetensors"
	indexName  = "model.safetensors.index.json"
	maxIndex   = 64 << 20 // bytes
)

// shardName matches a plain file name. An index from an untrusted repository may contain anything, including
// "../../etc/passwd".
var shardName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,255}\.safetensors$`)

// Set holds the weights of a model directory: one file, or shards with an index. Its methods may be called from
// several goroutines.
type Set struct {
	files   []*File
	tensors []Info
	file    map[string]*File // by tensor name
}

// OpenDir opens model.safetensors in dir, or the shards listed in model.safetensors.index.json. The index and the
// shards must agree in both directions. It never opens a file outside dir, not even through symbolic links, except
// within one model of Hugging Face's cache: the files of models--NAME/snapshots/REVISION are links to
// models--NAME/blobs.
func OpenDir(dir string) (*Set, error) {
	in, err := openModelDir(dir)
	if err != nil {
		return nil, err
	}
	defer in.root.Close()
	s := &Set{file: map[string]*File{}}
	err = s.open(in)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return s, nil
}

// modelDir is a directory within a root; reading from it never leaves the root.
type modelDir struct {
	root *os.Root
	dir  string // within the root, with slashes
}

func openModelDir(dir string) (modelDir, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return modelDir{}, err
	}
	snapshots, revision := filepath.Split(real)
	model := filepath.Dir(filepath.Clean(snapshots))
	if filepath.Base(snapshots) == "snapshots" && strings.HasPrefix(filepath.Base(model), "models--") {
		root, err := os.OpenRoot(model)
		return modelDir{root, path.Join("snapshots", revision)}, err
	}
	root, err := os.OpenRoot(dir)
	return modelDir{root, "."}, err
}

// open opens a regular file.
func (m modelDir) open(name string) (*os.File, error) {
	if err := regular(m.root.Stat(path.Join(m.dir, name))); err != nil {
		return nil, err
	}
	return m.root.Open(path.Join(m.dir, name))
}

// lstat describes a file, or the link itself if it is one.
func (m modelDir) lstat(name string) (fs.FileInfo, error) {
	return m.root.Lstat(path.Join(m.dir, name))
}

func (s *Set) open(in modelDir) error {
	index, err := readIndex(in)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := s.add(in, singleName); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return fmt.Errorf("it has neither %s nor %s, and other formats are not read: %w", singleName, indexName,
			fs.ErrNotExist)
	case err != nil:
		return err
	}
	if _, err := in.lstat(singleName); err == nil {
		return fmt.Errorf("it has both %s and %s; remove the outdated one", singleName, indexName)
	}
	opened := map[string]*File{}
	for name, shard := range index {
		if opened[shard] != nil {
			continue
		}
		if !shardName.MatchString(shard) {
			return fmt.Errorf("%s: shard name %q of tensor %q is not a plain *.safetensors file name",
				indexName, shard, name)
		}
		if err := s.add(in, shard); err != nil {
			return err
		}
		opened[shard] = s.files[len(s.files)-1]
	}
	for name, shard := range index {
		if s.file[name] != opened[shard] {
			return fmt.Errorf("%s places tensor %q in %s, which does not contain it", indexName, name, shard)
		}
	}
	for _, t := range s.tensors {
		if _, ok := index[t.Name]; !ok {
			return fmt.Errorf("%s does not list tensor %q", indexName, t.Name)
		}
	}
	return nil
}

// add opens one file of the set.
func (s *Set) add(in modelDir, name string) error {
	f, err := in.open(name)
	if err != nil {
		if st, serr := in.lstat(name); serr == nil && st.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%w\n  %s is a symbolic link out of the directory and is not followed; "+
				"put the file itself there", err, name)
		}
		return err
	}
	file, err := openFile(f)
	if err != nil {
		return err
	}
	s.files = append(s.files, file)
	for _, t := range file.Tensors() {
		if s.file[t.Name] != nil {
			return fmt.Errorf("%s: tensor %q is also in another shard", name, t.Name)
		}
		s.file[t.Name] = file
		s.tensors = append(s.tensors, t)
	}
	return nil
}

// readIndex returns the weight map of an index: tensor name to shard name.
func readIndex(in modelDir) (map[string]string, error) {
	f, err := in.open(indexName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIndex+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxIndex {
		return nil, fmt.Errorf("%s is larger than %d bytes", indexName, maxIndex)
	}
	m, err := parseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", indexName, err)
	}
	return m, nil
}

func parseIndex(text []byte) (map[string]string, error) {
	var index struct {
		WeightMap json.RawMessage `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, err
	}
	if index.WeightMap == nil {
		return nil, errors.New("no weight_map")
	}
	z := &scanner{s: index.WeightMap}
	m, err := z.stringMap()
	if err != nil {
		return nil, fmt.Errorf("weight_map: %w", err)
	}
	return m, nil
}

// Tensors lists all tensors, shard by shard. The caller must not modify the slice.
func (s *Set) Tensors() []Info { return s.tensors }

// Lookup finds a tensor by name. Its Offset is relative to the shard that holds it.
func (s *Set) Lookup(name string) (Info, bool) {
	f := s.file[name]
	if f == nil {
		return Info{}, false
	}
	return f.Lookup(name)
}

// ReadAt fills p with the bytes of a tensor from byte off on. It reads all of p or fails.
func (s *Set) ReadAt(name string, p []byte, off int64) error {
	f := s.file[name]
	if f == nil {
		return fmt.Errorf("safetensors: no tensor %q", name)
	}
	return f.ReadAt(name, p, off)
}

// Close closes all files.
func (s *Set) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// WriteDir writes tensors to dir as model.safetensors or, above maxShard bytes, as shards of at most that size (a
// larger tensor gets its own shard) with an index. dir must exist, without weights in the other of these forms; the
// tensors keep their order across shards.
func WriteDir(dir string, tensors []Tensor, maxShard int64) error {
	var shards [][]Tensor
	var total, used int64
	for _, t := range tensors {
		size, err := t.DType.ByteSize(t.Shape)
		if err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
		}
		if len(shards) == 0 || used+size > maxShard && used > 0 {
			shards, used = append(shards, nil), 0
		}
		last := &shards[len(shards)-1]
		*last = append(*last, t)
		used, total = used+size, total+size
	}
	other := singleName
	if len(shards) <= 1 {
		other = indexName
	}
	if _, err := os.Lstat(filepath.Join(dir, other)); err == nil {
		return fmt.Errorf("safetensors: %s holds other weights, in %s: write to another directory", dir, other)
	}
	if len(shards) <= 1 {
		return WriteFile(filepath.Join(dir, singleName), tensors, nil)
	}
	where := map[string]string{}
	for i, shard := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		for _, t := range shard {
			if where[t.Name] != "" {
				return fmt.Errorf("safetensors: tensor %q is given twice", t.Name)
			}
			where[t.Name] = name
		}
		if err := WriteFile(filepath.Join(dir, name), shard, nil); err != nil {
			return err
		}
	}
	index := map[string]any{"metadata": map[string]int64{"total_size": total}, "weight_map": where}
	return writeAtomic(filepath.Join(dir, indexName), func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(index)
	})
}
