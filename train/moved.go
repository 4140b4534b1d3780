package train

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"anneal/dataset"
	"anneal/train/config"
)

// A run's config.yaml names its data by absolute paths, so that the run can be moved without its data. Its first line
// says where the run was made. If run and data are moved together, the data is found at the same relative path.
const placeComment = "# Made in "

// place returns the line that records the run's directory.
func (d runDir) place() []byte {
	abs, err := filepath.Abs(string(d))
	if err != nil {
		return nil
	}
	const note = "if this run and its data are moved together, the data is still found."
	return fmt.Appendf(nil, "%s%q; %s\n", placeComment, abs, note)
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

// madeIn returns the directory where the run was made; "" if its configuration does not record it.
func (d runDir) madeIn() (string, error) {
	text, err := os.ReadFile(d.config())
	if err != nil {
		return "", err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	quoted, err := strconv.QuotedPrefix(string(bytes.TrimPrefix(line, []byte(placeComment))))
	if err != nil || !bytes.HasPrefix(line, []byte(placeComment)) {
		return "", nil // from an earlier version, or edited
	}
	return strconv.Unquote(quoted)
}
