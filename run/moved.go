package run

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/internal/yaml"
)

// A run's config.yaml names its data by absolute paths, so that the run can be moved without its data. Its first line
// says where the run was made. If run and data are moved together, the data is found at the same relative path.
var place = regexp.MustCompile(`\A# (?:Run [0-9a-f]{16}, m|M)ade in (".*"); `)

// firstLine returns the line that records the run's id and directory.
func (d runDir) firstLine(id string) []byte {
	abs, err := filepath.Abs(string(d))
	if err != nil {
		abs = string(d)
	}
	const note = "if this run and its data are moved together, the data is still found."
	return fmt.Appendf(nil, "# Run %s, made in %q; %s\n", id, abs, note)
}

// findData replaces paths of missing data sets by their location if they were moved along with the run.
func (d runDir) findData(cfg *config.Config) error {
	was, err := d.madeIn()
	if err != nil || was == "" || !cfg.HasData() {
		return err
	}
	now, err := filepath.Abs(string(d))
	if err != nil {
		return err
	}
	cfg.MapPaths(func(_, path string) string {
		rel, err := filepath.Rel(was, path)
		if here := filepath.Join(now, rel); err == nil && !dataset.Exists(path) && dataset.Exists(here) {
			return here
		}
		return path
	})
	return nil
}

// saysWhere adds to an error about missing or different data where the run's configuration names the data, because
// commands that continue a run have no option for another place.
func (d runDir) saysWhere(cfg *config.Config, err error) error {
	if !errors.Is(err, dataset.ErrNone) && !errors.Is(err, dataset.ErrOther) {
		return err
	}
	key := "data.path"
	if cfg.Data.Mix.Given() {
		key = "data.mix"
	}
	return fmt.Errorf("%w\n  if the data set is elsewhere, set %s in %s", err, key, d.config())
}

// madeIn returns the directory where the run was made; "" if its configuration does not record it.
func (d runDir) madeIn() (string, error) {
	text, err := fileio.ReadSmall(d.config(), yaml.MaxBytes)
	if err != nil {
		return "", err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	m := place.FindSubmatch(line)
	if m == nil {
		return "", nil // edited
	}
	return strconv.Unquote(string(m[1]))
}
