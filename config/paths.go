package config

import (
	"fmt"
	"os"
	"path/filepath"
)

// MapPaths replaces the paths of data, initial weights, a teacher, tasks and prompts by the results of f; key is the
// key of the path.
func (c *Config) MapPaths(f func(key, path string) string) {
	if c.Data.Path != "" {
		c.Data.Path = f("data.path", c.Data.Path)
	}
	if c.Init.From != "" {
		c.Init.From = f("init.from", c.Init.From)
	}
	if c.Distill.On() {
		c.Distill.Teacher = f("distill.teacher", c.Distill.Teacher)
	}
	if c.Eval.Tasks != "" {
		c.Eval.Tasks = f("eval.tasks", c.Eval.Tasks)
	}
	if c.Samples.Prompts != "" {
		c.Samples.Prompts = f("samples.prompts", c.Samples.Prompts)
	}
	if !c.Data.Mix.Given() {
		return
	}
	list, err := c.Sources()
	if err != nil {
		return // the check says so
	}
	for i, s := range list {
		list[i].Path = f("data.mix", s.Path)
	}
	c.Data.Mix = mixOf(list)
}

// absolute returns the absolute form of a path, so that a run does not depend on the working directory. A relative
// path in a file is relative to the file. If it exists only in the working directory, as early versions expected, it
// is found there, with a remark. A path on the command line is relative to the working directory.
func (c *Config) absolute(key, path string) string {
	here, err := filepath.Abs(path)
	from := c.origins[key]
	if err != nil {
		return path
	}
	if filepath.IsAbs(path) || from.CommandLine != "" || from.File == "" {
		return here
	}
	dir, err := filepath.Abs(filepath.Dir(from.File))
	if err != nil {
		return here
	}
	beside := filepath.Join(dir, path)
	if exists(beside) || !exists(here) {
		return beside
	}
	try, err := filepath.Rel(dir, here)
	if err != nil {
		try = here
	}
	c.Remark(fmt.Sprintf("%s: %s is found in the working directory, not beside %s; "+
		"paths in a config are relative to its file: write %s", key, path, from.File, try))
	return here
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
