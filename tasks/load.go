package tasks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/internal/fileio"
	"anneal/internal/yaml"
)

// A Set holds tasks that are evaluated together, and groups of them.
type Set struct {
	Tasks  []*Task
	groups []*group
}

// Limits on the files that a file includes: the depth of includes, and their number.
const (
	maxInclude  = 8
	maxIncluded = 256
)

// Load reads the task or group in a file, or those in all .yaml files of a directory and its subdirectories. Files
// without task and group that others include are their templates. An error is a *Problem, or an error of reading a
// file.
func Load(path string) (*Set, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w\n  try a task's YAML file, or a directory of such files", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	l := loader{files: map[string][]*entry{}, included: map[string]bool{}}
	var s Set
	paths := []string{path}
	if info.IsDir() {
		if paths, err = yamlFiles(path); err != nil {
			return nil, err
		}
	}
	for _, p := range paths {
		l.left = maxIncluded
		if l.files[p], err = l.read(p, 0); err != nil {
			return nil, err
		}
	}
	for _, p := range paths {
		keys := l.files[p]
		switch named := slices.ContainsFunc(keys, func(e *entry) bool { return e.key == "task" }); {
		case isGroup(keys):
			g, err := newGroup(p, keys)
			if err != nil {
				return nil, err
			}
			s.groups = append(s.groups, g)
		case !named && l.included[filepath.Clean(p)]:
		default:
			t, err := newTask(p, keys)
			if err != nil {
				return nil, err
			}
			s.Tasks = append(s.Tasks, t)
		}
	}
	return &s, s.check(path)
}

func yamlFiles(dir string) (list []string, err error) {
	root := filepath.Clean(dir) + string(filepath.Separator) // follows a link
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ext := filepath.Ext(path); !d.IsDir() && (ext == ".yaml" || ext == ".yml") {
			list = append(list, path)
		}
		return nil
	})
	return list, err
}

// check finds names that are missing or occur twice.
func (s *Set) check(path string) error {
	tasks := map[string]*Task{}
	for _, t := range s.Tasks {
		if other := tasks[t.Name]; other != nil {
			return &Problem{
				At: t.File, Message: "the task " + clip(t.Name) + " is in " + other.File + ", too", Try: "another name",
			}
		}
		tasks[t.Name] = t
	}
	for _, g := range s.groups {
		for _, name := range g.tasks {
			if tasks[name] == nil {
				return &Problem{
					At: path, Message: "the group " + clip(g.name) + " has the task " + clip(name) +
						", which no file here holds", Try: "the directory with the files of all its tasks",
				}
			}
		}
		if err := g.check(tasks); err != nil {
			return err
		}
	}
	if len(s.Tasks) == 0 {
		return &Problem{At: path, Message: "no tasks", Try: "a file or directory with task: NAME in .yaml files"}
	}
	return nil
}

// Generates returns the name of a task whose answers the model writes; "" if there is none.
func (s *Set) Generates() string {
	for _, t := range s.Tasks {
		if t.Output == Generate {
			return t.Name
		}
	}
	return ""
}

// loader reads files, and what they include.
type loader struct {
	files    map[string][]*entry
	included map[string]bool
	left     int // how many more files the current file may include
}

// read returns the keys of a file and of the files that it includes; the file's own keys replace theirs.
func (l *loader) read(path string, depth int) ([]*entry, error) {
	text, err := fileio.ReadSmall(path, yaml.MaxBytes)
	if err != nil {
		return nil, err
	}
	keys, err := readFile(path, text)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(keys, func(e *entry) bool { return e.key == "include" })
	if at < 0 {
		return keys, nil
	}
	include := keys[at]
	if depth == maxInclude {
		return nil, include.problem("fewer of them", "more than %d files include each other", maxInclude)
	}
	names, err := include.texts()
	if err != nil {
		return nil, err
	}
	keys = slices.Delete(keys, at, at+1)
	var merged []*entry
	for _, name := range names {
		if strings.Contains(name, "://") {
			return nil, include.problem("a local file", "include: %s is not a file", clip(name))
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		if l.left--; l.left < 0 {
			return nil, include.problem("fewer of them", "more than %d files are included", maxIncluded)
		}
		l.included[filepath.Clean(name)] = true
		base, err := l.read(name, depth+1)
		if err != nil {
			return nil, err
		}
		merged = replaceKeys(merged, base)
	}
	return replaceKeys(merged, keys), nil
}

// replaceKeys returns the keys of a list, replaced by those of another and followed by its others.
func replaceKeys(list, by []*entry) []*entry {
	for _, e := range by {
		if at := slices.IndexFunc(list, func(o *entry) bool { return o.key == e.key }); at >= 0 {
			list[at] = e
		} else {
			list = append(list, e)
		}
	}
	return list
}
