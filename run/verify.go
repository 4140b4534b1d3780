package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/internal/yaml"
	"anneal/prepare"
)

// VerifyReport is the result of Verify for an undamaged run.
type VerifyReport struct {
	Checkpoints []checkpoint.Info // from newest to oldest
	Aside       []checkpoint.Info // set aside by rewinds
	// findings that are not damage: changed values, foreign files, moved data
	Remarks []string
}

func (r *VerifyReport) remark(format string, args ...any) {
	r.Remarks = append(r.Remarks, fmt.Sprintf(format, args...))
}

// Verify checks every file of the run in dir and returns the first damage. It reads every byte of every checkpoint,
// the configuration, the tokenizer, the metrics and the journal. It also checks that all of them belong to this run,
// and so does the data if it is still in its place. The run may be in progress.
func Verify(dir string) (*VerifyReport, error) {
	d, r := runDir(dir), &VerifyReport{}
	cfg, err := d.load()
	if err != nil {
		return nil, err
	}
	if r.Checkpoints, err = checkpoint.Verify(d.checkpoints()); err != nil {
		return r, err
	}
	if r.Aside, err = checkpoint.Verify(filepath.Join(d.checkpoints(), checkpoint.AsideName)); err != nil &&
		!errors.Is(err, checkpoint.ErrNone) {
		return r, err
	}
	if err := d.checkOrigin(r.Checkpoints[0]); err != nil {
		return r, err
	}
	if err := d.verifyMetrics(); err != nil {
		return r, err
	}
	if err := d.verifyJournal(); err != nil {
		return r, err
	}
	if err := d.verifyRewind(); err != nil {
		return r, err
	}
	if err := r.compare(d, cfg); err != nil {
		return r, err
	}
	return r, r.strangers(d)
}

// compare compares the newest checkpoint's state with the configuration and the data.
func (r *VerifyReport) compare(d runDir, cfg *config.Config) error {
	var last state
	info, err := checkpoint.LoadState(d.checkpoints(), &last)
	if err != nil {
		return err
	}
	if err := last.checkModel(cfg.Model, d); err != nil {
		return err
	}
	if last.Config == nil {
		return nil // an import or an average has no training
	}
	if text, err := fileio.ReadSmall(d.config(), yaml.MaxBytes); err == nil && info.Config != "" &&
		info.Config != sha256Of(text) {
		list := allChanges(last.Config, cfg)
		if list == nil {
			list = []string{"only its comments"}
		}
		r.remark("%s was changed after step %d: %s", d.config(), info.Step, strings.Join(list, "; "))
	}
	c, err := prepare.OpenCorpus(cfg)
	if errors.Is(err, dataset.ErrNone) {
		r.remark("the data is not checked: %v", firstLineOf(err))
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	err = last.readAs(cfg, func(cfg *config.Config) error {
		if err := c.OpenTraining(cfg); err != nil {
			return err
		}
		return c.Train.Check(last.Data)
	})
	if err != nil {
		return d.saysWhere(cfg, &dataset.Error{Err: err})
	}
	return nil
}

func firstLineOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// verifyMetrics returns an error for a line of the metrics that cannot be read.
func (d runDir) verifyMetrics() error {
	return verifyLines(d.metrics(), "the next resume leaves it out", func(line []byte) error {
		_, err := readLoggedStep(line)
		return err
	})
}

// verifyJournal returns an error for a line of the journal that cannot be read.
func (d runDir) verifyJournal() error {
	return verifyLines(d.journal(), "nothing depends on it: remove the line", func(line []byte) error {
		return json.Unmarshal(line, &JournalLine{})
	})
}

// verifyLines returns an error for a line that check refuses. The last may be incomplete: the run is writing it, or
// was killed.
func verifyLines(path, remedy string, check func(line []byte) error) error {
	n := 0
	return eachLine(path, func(line []byte) error {
		n++
		if err := check(line); err != nil && bytes.HasSuffix(line, []byte("\n")) {
			return &dataset.Error{Err: fmt.Errorf("%s: line %d cannot be read: %w\n  %s", path, n, err, remedy)}
		}
		return nil
	})
}

// verifyRewind returns an error for the plan of a rewind that cannot be completed.
func (d runDir) verifyRewind() error {
	text, err := fileio.ReadSmall(d.rewind(), maxRewind)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = parseRewind(text)
	}
	if err != nil {
		return &dataset.Error{Err: fmt.Errorf("%s is damaged: %w\n  remove it and rewind again", d.rewind(), err)}
	}
	return nil
}

// strangers names the files in the run's directory that do not belong to the run.
func (r *VerifyReport) strangers(d runDir) error {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return fmt.Errorf("cannot read the run: %w", err)
	}
	for _, e := range entries {
		if !d.owns(e.Name()) {
			r.remark("%s is not part of the run", filepath.Join(string(d), e.Name()))
		}
	}
	for _, info := range r.Checkpoints {
		for _, name := range info.Ignored {
			r.remark("%s is not part of the checkpoint", filepath.Join(d.checkpoints(), info.Name, name))
		}
	}
	return nil
}

// owns reports whether a file with this name in the directory belongs to the run, or is harmless: a log or a hidden
// file.
func (d runDir) owns(name string) bool {
	var own []string
	for _, path := range []string{
		d.config(), d.tokenizer(), d.tokenizerConfig(), d.metrics(), d.journal(), d.diverged(), d.rewind(),
		d.checkpoints(), d.branch(), d.crash(), d.ranks(), d.exit(), d.timing(), d.report(), d.unfinished(),
		d.samples(), filepath.Join(string(d), "tensorboard"),
	} {
		own = append(own, filepath.Base(path))
	}
	return slices.Contains(own, name) || isLog(name)
}
