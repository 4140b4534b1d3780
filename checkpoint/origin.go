package checkpoint

import (
	"errors"
	"fmt"
	"regexp"
)

// Origin says which run made a checkpoint, and with which files. A field may be "", which means unknown.
type Origin struct {
	Run             string `json:"run,omitempty"` // id, 16 hex digits
	Config          string `json:"config_sha256,omitempty"`
	Tokenizer       string `json:"tokenizer_sha256,omitempty"`
	TokenizerConfig string `json:"tokenizer_config_sha256,omitempty"`
	CodeVersion     string `json:"code_version,omitempty"`
}

// ErrOtherRun means that a checkpoint is in the directory of a run that did not make it.
var ErrOtherRun = errors.New("belongs to another run")

var (
	runID   = regexp.MustCompile(`^[0-9a-f]{16}$`)
	hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func (o *Origin) check() error {
	if o.Run != "" && !runID.MatchString(o.Run) {
		return fmt.Errorf("run is %.40q, not 16 hex digits", o.Run)
	}
	for _, h := range []string{o.Config, o.Tokenizer, o.TokenizerConfig} {
		if h != "" && !hexHash.MatchString(h) {
			return fmt.Errorf("the hash %.80q is not 64 hex digits", h)
		}
	}
	return nil
}

// sameRun returns an error unless the usable checkpoints are all of one run.
func sameRun(root string, entries []Entry) error {
	var first *Entry
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Err != nil:
		case first == nil:
			first = e
		case e.Run != first.Run:
			return fmt.Errorf("checkpoint: %s: %s %w than %s: they belong to the runs %s and %s\n"+
				"  move away the one that was copied here; the first line of config.yaml names its own run",
				root, e.Name, ErrOtherRun, first.Name, e.RunName(), first.RunName())
		}
	}
	return nil
}

// RunName is the run's id for messages.
func (o *Origin) RunName() string {
	if o.Run == "" {
		return "(without an id)"
	}
	return o.Run
}
