package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"anneal/internal/fileio"
)

// walker collects the files to read.
type walker struct {
	extensions map[string]bool // nil: all
	out        string          // resolved path of the output; "" if there is none
	inOut      bool            // the user named a path in the output, below which everything is read
	skip       map[string]bool // resolved paths of files that are not read below directories
	seen       map[string]bool // resolved paths of files and directories
	files      []string
	sizes      []int64
	size       int64
	rejects    []Reject
}

func extensionSet(list []string) map[string]bool {
	if len(list) == 0 {
		return nil
	}
	set := map[string]bool{}
	for _, e := range list {
		set["."+strings.ToLower(strings.TrimPrefix(e, "."))] = true
	}
	return set
}

// root adds a path that the user named. It must exist and be readable; hidden names and all extensions are accepted. A
// directory that `anneal data curate` or `dedup` wrote stands for its kept documents.
func (w *walker) root(path string) error {
	if real, err := resolve(path); err == nil && real == w.out {
		return fmt.Errorf("input %s: it is the output too\n  name another place for the output", path)
	}
	if isMade(path) {
		return fmt.Errorf("input %s: it is %s, not text\n  name the text itself", path, Made)
	}
	if docs, ok := keptDocuments(path); ok {
		path = docs
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("input %s: %s", path, fileio.Cause(err))
	}
	real, err := resolve(path)
	if err != nil {
		return fmt.Errorf("input %s: %s", path, fileio.Cause(err))
	}
	w.inOut = w.out != "" && isWithin(w.out, real)
	if info.IsDir() {
		if _, err := os.ReadDir(path); err != nil {
			return fmt.Errorf("input %s: %s", path, fileio.Cause(err))
		}
		w.dir(path, real)
		return nil
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("input %s: not a regular file (it is read more than once)", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("input %s: %s", path, fileio.Cause(err))
	}
	f.Close()
	w.file(path, real, info)
	return nil
}

// resolve returns the absolute path without symbolic links of a file or directory that need not exist.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return resolveMissing(path)
	}
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

func resolveMissing(path string) (string, error) {
	dir, name := filepath.Split(strings.TrimRight(path, string(filepath.Separator)))
	if to, err := os.Readlink(dir + name); err == nil {
		if filepath.IsAbs(to) {
			return resolve(to)
		}
		return resolve(dir + to)
	}
	if dir == "" {
		dir = "."
	}
	real, err := resolve(dir)
	if err != nil {
		return "", err
	}
	return filepath.Join(real, name), nil
}

// isWithin reports whether a resolved path is dir or lies below it.
func isWithin(dir, path string) bool {
	separator := string(filepath.Separator)
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, separator)+separator)
}

// keptDocuments returns the subdirectory of documents in a directory that curation or deduplication wrote, which also
// has a report, journals and lists of duplicates. ok is false for any other path.
func keptDocuments(path string) (docs string, ok bool) {
	docs = filepath.Join(path, "docs")
	return docs, holds(path, "report.json") && (holds(docs, "00000.jsonl.zst") || holds(docs, writtenName(0)))
}

// isMade reports whether a directory is a data set or a run, whose files are no text to learn from.
func isMade(dir string) bool {
	if holds(dir, "journal.jsonl") && holds(dir, "config.yaml") {
		return true
	}
	f, err := os.Open(filepath.Join(dir, "dataset.json"))
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 64)
	n, _ := f.Read(start)
	return bytes.Contains(start[:n], []byte(`"anneal-dataset"`))
}

// holds reports whether a directory has a regular file of this name.
func holds(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// dir walks a directory in sorted order. real is its path without symbolic links.
func (w *walker) dir(path, real string) {
	if w.seen[real] {
		w.reject(path, Twice, "")
		return
	}
	w.seen[real] = true
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		w.lose(path, err)
		return
	}
	for _, e := range entries {
		w.entry(filepath.Join(path, e.Name()), filepath.Join(real, e.Name()), e)
	}
}

func (w *walker) entry(path, real string, e fs.DirEntry) {
	info, err := e.Info()
	link := err == nil && info.Mode()&fs.ModeSymlink != 0
	if link {
		if real, err = filepath.EvalSymlinks(real); err == nil {
			info, err = os.Stat(real)
		}
	}
	switch {
	case err == nil && (w.skip[real] || w.out != "" && !w.inOut && isWithin(w.out, real)):
		// Not rejected: the report of a command that is given again must not differ from its first.
	case strings.HasPrefix(e.Name(), "."):
		w.reject(path, Hidden, "")
	case link && errors.Is(err, fs.ErrNotExist):
		w.reject(path, Dangling, "")
	case err != nil:
		w.lose(path, err)
	case info.IsDir() && isMade(path):
		w.reject(path, Made, "")
	case info.IsDir():
		if docs, ok := keptDocuments(path); ok {
			path, real = docs, filepath.Join(real, "docs")
		}
		w.dir(path, real)
	case !info.Mode().IsRegular():
		w.reject(path, NotRegular, "")
	case w.extensions != nil && !w.extensions[ExtensionOf(path)]:
		w.reject(path, Extension, "")
	default:
		w.file(path, real, info)
	}
}

func (w *walker) file(path, real string, info fs.FileInfo) {
	if w.seen[real] {
		w.reject(path, Twice, "")
		return
	}
	w.seen[real] = true
	w.files = append(w.files, path)
	w.sizes = append(w.sizes, info.Size())
	w.size += info.Size()
}

func (w *walker) reject(path string, reason Reason, detail string) {
	w.rejects = append(w.rejects, Reject{Source: path, Reason: reason, Detail: detail})
}

// lose leaves out a file or directory that may hold text.
func (w *walker) lose(path string, err error) {
	w.rejects = append(w.rejects, Reject{
		Source: path, Reason: Unreadable, Detail: fileio.Cause(err).Error(), Rest: true, Documents: 1,
	})
}
