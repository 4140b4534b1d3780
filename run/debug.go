package run

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"anneal/internal/fileio"
)

// A DebugFile is a file of a debug archive.
type DebugFile struct {
	Name string `json:"name"`
	Size int    `json:"bytes"`
	text []byte
}

// Debug is the information that a report of a problem with a run needs: its configuration, its journal, its last
// metrics, crash dumps, and a list of its files. It holds no text of the data, no tokenizer and no weights; paths,
// names of this user and host, and secrets in URLs are redacted.
type Debug struct {
	Files []DebugFile
	hide  redactor
}

const (
	debugTail     = 256 << 10 // largest part of a file of lines
	debugCrash    = 1 << 20   // most of a crash dump
	debugCrashes  = 5         // the newest
	debugMostList = 10_000    // files that are listed
)

// NewDebug collects the archive of the run in dir. The run may be incomplete: for a file that cannot be read, the
// archive holds a note.
func NewDebug(dir string) (*Debug, error) {
	d := runDir(dir)
	own := []string{d.config(), d.journal(), d.metrics(), d.checkpoints()}
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	if !slices.ContainsFunc(own, exists) {
		return nil, fmt.Errorf("%s %w\n  `anneal ls DIR` lists the runs below a directory", dir, ErrNoRun)
	}
	b := &Debug{hide: newRedactor(d)}
	b.add(d.config(), 1<<20)
	for _, path := range []string{d.journal(), d.metrics()} {
		b.add(path, debugTail)
	}
	for _, path := range []string{d.branch(), d.exit(), d.timing(), d.diverged(), d.rewind()} {
		if _, err := os.Stat(path); err == nil {
			b.add(path, debugTail)
		}
	}
	crashes, _ := filepath.Glob(filepath.Join(d.crash(), "*"))
	slices.Sort(crashes) // their names begin with the time
	for _, path := range crashes[max(0, len(crashes)-debugCrashes):] {
		b.addAs("crash/"+filepath.Base(path), path, debugCrash)
	}
	b.Add("files.txt", listing(dir))
	return b, nil
}

// Add adds a text, redacted.
func (b *Debug) Add(name string, text []byte) {
	text = b.hide.redact(text)
	b.Files = append(b.Files, DebugFile{name, len(text), text})
}

func (b *Debug) add(path string, most int64) { b.addAs(filepath.Base(path), path, most) }

// addAs adds a file. Of a file that is too long it adds only the last whole lines.
func (b *Debug) addAs(name, path string, most int64) {
	text, err := tailOf(path, most)
	if err != nil {
		name, text = name+".missing", []byte(err.Error()+"\n")
	}
	b.Add(name, text)
}

// tailOf returns a file, or, if it is longer than most, its last whole lines.
func tailOf(path string, most int64) ([]byte, error) {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-most)
	text, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return text, err
}

// listing names the files of a run with their sizes and times.
func listing(dir string) []byte {
	var b bytes.Buffer
	n := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if n++; n > debugMostList {
			return errors.New("there are more files")
		}
		if err != nil {
			fmt.Fprintf(&b, "%s: %v\n", name, err)
			return nil
		}
		if info, err := e.Info(); err == nil && !e.IsDir() {
			fmt.Fprintf(&b, "%12d  %s  %s\n", info.Size(), info.ModTime().UTC().Format(time.DateTime), name)
		}
		return nil
	})
	if err != nil {
		fmt.Fprintf(&b, "%v\n", err)
	}
	return b.Bytes()
}

// Write writes the archive, a .tar.gz whose files stand in one directory.
func (b *Debug) Write(w io.Writer, root string) error {
	zip := gzip.NewWriter(w)
	out := tar.NewWriter(zip)
	for _, f := range b.Files {
		err := out.WriteHeader(&tar.Header{
			Name: root + "/" + f.Name, Mode: 0o644, Size: int64(len(f.text)), ModTime: time.Now().Truncate(time.Second),
		})
		if err != nil {
			return err
		}
		if _, err := out.Write(f.text); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), zip.Close())
}

// Redacted describes to users what is removed from all texts.
const Redacted = "directories, user and host names, credentials and paths of URLs, log.webhook"
