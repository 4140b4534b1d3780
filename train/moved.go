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

// A run's config.yaml names its data by absolute paths, so that the run alone can be moved. Its first line says where the run was made: if
// run and data are moved together, the data lies where it lay, seen from the run.
const placeComment = "# Made in "

// place returns the line that says where the run is.
func (d runDir) place() []byte {
	abs, err := filepath.Abs(string(d))
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, "%s%q; if this run and its data are moved together, the data is still found.\n", placeComment, abs)
}

// findData replaces paths of data sets that are gone by where these lie if they were moved along with the run.
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

// madeIn returns where the run was made; "" if its configuration does not say.
func (d runDir) madeIn() (string, error) {
	text, err := os.ReadFile(d.config())
	if err != nil {
		return "", err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	quoted, err := strconv.QuotedPrefix(string(bytes.TrimPrefix(line, []byte(placeComment))))
	if err != nil || !bytes.HasPrefix(line, []byte(placeComment)) {
		return "", nil // of an earlier version, or edited
	}
	return strconv.Unquote(quoted)
}
