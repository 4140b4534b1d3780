package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"anneal/internal/fileio"

	"github.com/alecthomas/kong"
)

// outFile is a flag that names one file to write with fileio.Write. If the file is standard output, nothing else is
// written there: text for people goes to standard error.
type outFile string

// String returns the file's name for people.
func (f outFile) String() string {
	if f == fileio.Standard {
		return "standard output"
	}
	return string(f)
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// next returns a command on the file, or "" if the file cannot be read again under its name.
func (f outFile) next(before, after string) string {
	if info, err := os.Stat(string(f)); err != nil || !info.Mode().IsRegular() || fileio.IsStdout(string(f)) {
		return ""
	}
	return before + " " + command(operand(string(f))) + " " + after
}

// prepareFiles checks before the work that the files that flags name can be written, and makes their directories. It
// refuses a file that another flag or argument names. If a file is standard output, nothing else is written there.
func (s *session) prepareFiles(flags []*kong.Flag, args []*kong.Positional) error {
	values := slices.Clone(args)
	for _, f := range flags {
		values = append(values, f.Value)
	}
	var named []string
	for _, v := range values {
		switch x := v.Target.Interface().(type) {
		case string:
			named = append(named, x)
		case []string:
			named = append(named, x...)
		}
	}
	written := map[string]string{} // by file: the flag that names it
	for _, f := range flags {
		path, ok := f.Target.Interface().(outFile)
		if !ok || path == "" {
			continue
		}
		file := filepath.Clean(string(path))
		if other := written[file]; other != "" && !fileio.IsStdout(file) {
			return &usageError{fmt.Sprintf("--%s and --%s both write %s", other, f.Name, file), "name another file"}
		}
		written[file] = f.Name
		if err := path.differs("--"+f.Name, named); err != nil {
			return err
		}
		if err := path.prepare("--"+f.Name, f.Tag.Get("example")); err != nil {
			return err
		}
		if fileio.IsStdout(string(path)) {
			if s.json {
				return &usageError{fmt.Sprintf("--json and --%s %s both write to standard output",
					f.Name, string(path)), "try --" + f.Name + " with a file"}
			}
			s.piped = true
		}
	}
	return nil
}

// differs refuses to replace a file that the command reads.
func (f outFile) differs(flag string, read []string) error {
	to, err := os.Stat(string(f))
	if err != nil || !to.Mode().IsRegular() {
		return nil
	}
	for _, path := range read {
		if from, err := os.Stat(path); err == nil && os.SameFile(from, to) {
			return &usageError{flag + " " + string(f) + " is the file that is read", "name another file"}
		}
	}
	return nil
}

// prepare is prepareFiles for one flag; name is an example of a file name.
func (f outFile) prepare(flag, name string) error {
	path := string(f)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &usageError{flag + " " + path + " is a directory", "try " + flag + " " + filepath.Join(path, name)}
	}
	err := fileio.Check(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return fmt.Errorf("cannot make the directory of %s: %w", flag, err)
		}
		err = fileio.Check(path)
	}
	if err != nil {
		return fmt.Errorf("cannot write to %s: %w", flag, err)
	}
	return nil
}
