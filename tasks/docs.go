package tasks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"anneal/internal/fileio"
	"anneal/internal/jsonlimit"
	"anneal/internal/parquet"
)

const (
	maxItems = 1 << 20  // of a split
	maxBytes = 1 << 30  // most bytes of the items of a split
	maxLine  = 16 << 20 // bytes of an item
)

var itemLimits = jsonlimit.Limits{Objects: 1 << 14, Values: 1 << 18}

// source is the data of a task.
type source struct {
	format string
	files  map[string][]string // by split
}

// A DataError describes data that cannot be used.
type DataError struct {
	File string
	Line int // or row, from 1; 0 if the file as a whole cannot be used
	Err  error
}

func (e *DataError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("%s: %v", at, e.Err)
}

func (e *DataError) Unwrap() error { return e.Err }

// readSource reads dataset_kwargs.
func readSource(format string, e *entry) (source, error) {
	s := source{format: format, files: map[string][]string{}}
	options, err := e.mapping("data_files")
	if err != nil {
		return s, err
	}
	if len(options) == 0 {
		return s, e.problem("data_files: {test: items.jsonl}", "dataset_kwargs without data_files")
	}
	files := []*entry{options[0]}
	if _, err := options[0].texts(); err == nil {
		files[0] = &entry{"train", e.file, options[0].node} // without a name, as the harness has it
	} else if files, err = pairs(e.file, options[0].node); err != nil {
		return s, err
	}
	for _, f := range files {
		names, err := f.texts()
		if err != nil {
			return s, err
		}
		for _, name := range names {
			path, err := f.find(name)
			if err != nil {
				return s, err
			}
			s.files[f.key] = append(s.files[f.key], path)
		}
	}
	return s, nil
}

// find returns the path of a data file, relative to the task's file or, if it is not there, to the working directory,
// as in the harness.
func (e *entry) find(name string) (string, error) {
	if strings.Contains(name, "://") {
		return "", e.problem("a local file", "%s: nothing is downloaded", clip(name))
	}
	paths := []string{filepath.Join(filepath.Dir(e.file), name), name}
	if filepath.IsAbs(name) {
		paths = paths[1:]
	}
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			return p, nil
		}
	}
	return "", e.problem("a path from the directory of the task's file, or from the working directory",
		"%s is no file", clip(name))
}

// items reads a split. All items have the same fields; a field that an item lacks is nil.
func (s source) items(split string) ([]map[string]any, error) {
	var list []map[string]any
	read, size := readLines, 0
	if s.format == "parquet" {
		read = readRows
	}
	fields := map[string]bool{}
	for _, file := range s.files[split] {
		err := read(file, func(line int, text []byte) error {
			if size += len(text); size > maxBytes || len(list) == maxItems {
				return &DataError{file, 0, fmt.Errorf("more than %d items or %d MiB", maxItems, maxBytes>>20)}
			}
			item, err := parseItem(text)
			if err != nil {
				return &DataError{file, line, err}
			}
			for k := range item {
				fields[k] = true
			}
			list = append(list, item)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, item := range list {
		for f := range fields {
			if _, ok := item[f]; !ok {
				item[f] = nil
			}
		}
	}
	return list, nil
}

// readLines yields the lines of a file of JSON Lines that are not empty.
func readLines(file string, yield func(line int, text []byte) error) error {
	f, err := fileio.OpenRegular(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		text := lines.Bytes()
		if n++; n == 1 {
			text = bytes.TrimPrefix(text, []byte(byteOrderMark))
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			if err := yield(n, text); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return &DataError{file, n + 1, err}
	}
	return nil
}

// readRows yields the rows of a parquet file as JSON.
func readRows(file string, yield func(row int, text []byte) error) error {
	f, err := fileio.OpenRegular(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p, err := parquet.OpenFields(f, info.Size())
	if err != nil {
		return &DataError{file, 0, err}
	}
	n := 0
	for i, g := range p.Groups {
		rows, err := p.Rows(i, maxLine, appendQuoted)
		if err != nil {
			return &DataError{file, n + 1, err}
		}
		for range g.Rows {
			n++
			text := []byte{'{'}
			_, err := rows.Next(func(name string, value []byte) {
				if len(text) > 1 {
					text = append(text, ',')
				}
				text = append(appendQuoted(text, []byte(name)), ':')
				text = append(text, value...)
			})
			if err != nil {
				return &DataError{file, n, err}
			}
			if err := yield(n, append(text, '}')); err != nil {
				return err
			}
		}
	}
	return nil
}

func appendQuoted(b, s []byte) []byte {
	text, err := json.Marshal(string(s))
	if err != nil {
		panic(err) // a string always has its JSON
	}
	return append(b, text...)
}

// parseItem converts a JSON object to values of templates.
func parseItem(text []byte) (map[string]any, error) {
	if err := itemLimits.Check(text); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	v, err = numbers(v)
	if err != nil {
		return nil, err
	}
	item, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("an item is an object: {\"field\": …}")
	}
	return item, nil
}

// numbers converts whole numbers to int64 and others to float64. It refuses those that a float64 cannot hold.
func numbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("the number %s is too large", clip(string(v)))
		}
		return f, nil
	case []any:
		for i, x := range v {
			if v[i], err = numbers(x); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k, x := range v {
			if v[k], err = numbers(x); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
