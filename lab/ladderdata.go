package lab

import (
	"fmt"
	"slices"
	"strings"

	"anneal/config"
	"anneal/dataset"
	"anneal/run"
)

// checkData opens the text of a ladder before anything is measured or trained. It keeps the fingerprints of a new
// ladder's data sets, and refuses to resume one on others: losses compare only on the same text.
func (l *Ladder) checkData(cfg *config.Config) error {
	sources, err := cfg.Sources()
	if err != nil {
		return err
	}
	var now, dirs []string
	judged := false
	for _, s := range sources {
		d, err := dataset.Open(s.Path)
		if err != nil {
			return &dataset.Error{Err: err}
		}
		now, dirs = append(now, d.Fingerprint()), append(dirs, d.Dir)
		judged = judged || d.Manifest.Val.Tokens >= 2
		d.Close()
	}
	switch at := strings.Join(dirs, ", "); {
	case !judged:
		return noHeldOut(at)
	case len(l.Data) > 0 && !slices.Equal(l.Data, now):
		return &dataset.Error{Err: fmt.Errorf("%s: %w, and its losses do not compare with those of this text\n"+
			"  give another --out, or the data that the study began with", at, dataset.ErrOther)}
	}
	l.Data = now
	return nil
}

func noHeldOut(data string) error {
	return &dataset.Error{Err: fmt.Errorf("%s: %w, which is needed to compare models\n  build one with "+
		"`anneal data build --val 0.01`", data, dataset.ErrNoValidation)}
}

// checkHeldOut returns an error if none of the configuration's data sets has text to compare models on.
func checkHeldOut(cfg *config.Config) error {
	sources, err := cfg.Sources()
	if err != nil {
		return err
	}
	var dirs []string
	for _, s := range sources {
		d, err := dataset.Open(s.Path)
		if err != nil {
			return &dataset.Error{Err: err}
		}
		tokens := d.Manifest.Val.Tokens
		if d.Close(); tokens >= 2 {
			return nil
		}
		dirs = append(dirs, d.Dir)
	}
	return noHeldOut(strings.Join(dirs, ", "))
}

// checkBranches refuses keys with which a run depends on its length before its rate decays: no shorter one could branch
// off it.
func checkBranches(cfg *config.Config) error {
	keys := run.LengthKeys(cfg)
	if len(keys) == 0 {
		return nil
	}
	return config.Problem{
		Key: keys[0], At: "command line",
		Message: fmt.Sprintf("with %s, steps depend on the length of a run: the shorter runs of a ladder could not "+
			"branch off its longest", strings.Join(keys, ", ")),
		Try: "leaving it out",
	}
}
