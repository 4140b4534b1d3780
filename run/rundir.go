package run

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/internal/fileio"
	"anneal/internal/shellword"
	"anneal/internal/yaml"
)

// A run directory holds everything about a run, as files:
//
//	config.yaml      the resolved configuration, with where each value came from
//	tokenizer.json   the tokenizer with which the data was built, byte for byte
//	tokenizer_config.json   which of its tokens ends a text
//	branch.json      only of a branch: the run and the step at which it began
//	metrics.jsonl    one line per step
//	journal.jsonl    what happened beside the steps: starts, warnings, rewinds
//	tensorboard/     with log.sinks = tensorboard: an event file of each process
//	checkpoints/     see package checkpoint
//	exit.json        how the last command that trained it ended
//	timing.json      what was predicted of its time and memory, and what they were
//	samples/         with samples.every: what the model wrote, a file for each step
//	report.html      the charts of the run, written at the end of every command that trains it
//	ranks/           of a run on several ranks: where those are that wait
//	crash/           only after a crash or a stall: stacks and state
//	rewind.json      only while a rewind is under way
//	diverged.json    only after divergence, until training continues
type runDir string

// word is the directory as a word of a command line, for commands that errors advise.
func (d runDir) word() string { return shellword.Command(string(d)) }

func (d runDir) config() string    { return filepath.Join(string(d), "config.yaml") }
func (d runDir) tokenizer() string { return filepath.Join(string(d), "tokenizer.json") }
func (d runDir) tokenizerConfig() string {
	return filepath.Join(string(d), "tokenizer_config.json")
}
func (d runDir) metrics() string     { return filepath.Join(string(d), "metrics.jsonl") }
func (d runDir) rewind() string      { return filepath.Join(string(d), "rewind.json") }
func (d runDir) checkpoints() string { return filepath.Join(string(d), "checkpoints") }
func (d runDir) ranks() string       { return filepath.Join(string(d), "ranks") }
func (d runDir) unfinished() string  { return d.config() + unfinished }

// unfinished ends the name of a file that is not yet whole.
const unfinished = ".tmp"

var (
	// ErrExists means that the directory for a new run already holds one.
	ErrExists = errors.New("already holds a run")
	// ErrNoRun means that a directory does not hold a run.
	ErrNoRun = errors.New("is not a run: it has no config.yaml")
)

// begin makes the directory of a new run, which does not count as a run yet. An unfinished configuration in it marks
// that it was begun, so that a killed start can be repeated.
func (d runDir) begin() error {
	if err := CheckNewRun(string(d)); err != nil {
		return err
	}
	if err := d.clear(); err != nil {
		return err
	}
	if err := os.MkdirAll(string(d), 0o777); err != nil {
		return fmt.Errorf("cannot make the run directory: %w", err)
	}
	if err := os.WriteFile(d.unfinished(), nil, 0o666); err != nil {
		return fmt.Errorf("cannot start the run: %w", err)
	}
	return nil
}

// clear removes the checkpoints of a killed start, and what said that it was a branch.
func (d runDir) clear() error {
	if err := os.RemoveAll(d.branch()); err != nil {
		return fmt.Errorf("cannot start the run: %w", err)
	}
	if _, err := os.Stat(d.checkpoints()); err != nil {
		return nil // CheckNewRun has looked at the directory
	}
	unlock, err := checkpoint.Lock(d.checkpoints())
	if err != nil {
		return err
	}
	defer unlock()
	left, err := checkpoint.List(d.checkpoints())
	for _, e := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(d.checkpoints(), e.Name)))
	}
	return err
}

// finish makes a run of the directory.
func (d runDir) finish(f runFiles) error {
	if err := f.write(d); err != nil {
		os.WriteFile(d.unfinished(), nil, 0o666) // writing has removed it; this way the start can still be repeated
		return fmt.Errorf("cannot start the run: %w", err)
	}
	return nil
}

// configure replaces the values of the run's configuration.
func (d runDir) configure(cfg *config.Config) error {
	text, err := fileio.ReadSmall(d.config(), yaml.MaxBytes)
	if err != nil {
		return err
	}
	return writeDurably(d.config(), d.configured(text, cfg))
}

// configured returns the present text of a configuration with the values of cfg. If load has found data that was moved
// with the run, the first line is updated, too, because the new paths belong to the present place of the run.
func (d runDir) configured(text []byte, cfg *config.Config) []byte {
	var first []byte
	files := runFiles{config: text}
	if id := files.run(); id != "" {
		first = d.firstLine(id)
	} else if place.Match(text) { // a run of an early version has no id
		first, _, _ = bytes.Cut(text, []byte("\n"))
		first = append(first, '\n')
	}
	return slices.Concat(first, cfg.YAML())
}

// writeDurably replaces the file at path by a complete new one, or leaves the old one unchanged.
func writeDurably(path string, data []byte) error {
	half := path + unfinished
	f, err := os.Create(half)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = fileio.Put(f, path)
	}
	if err != nil {
		f.Close()
		os.Remove(half)
	}
	return err
}

func existsError(dir string) error {
	return fmt.Errorf("%s %w\n  continue it with `anneal resume %s`, or choose another --out", dir, ErrExists,
		runDir(dir).word())
}

// BranchConfig reads the configuration of the run in dir with some values replaced.
func BranchConfig(dir string, overrides []string) (*config.Config, error) {
	if _, err := runDir(dir).load(); err != nil {
		return nil, err
	}
	if err := refuseWeights(runDir(dir)); err != nil {
		return nil, err
	}
	for _, o := range overrides {
		if key, _, _ := strings.Cut(o, "="); strings.HasPrefix(key, "init.") {
			return nil, config.Problem{
				Key: key, At: "command line: " + o, Message: fmt.Sprintf("%s has no effect on a branch, which begins "+
					"with a checkpoint of %s", key, dir),
				Try: "leaving it out, or `anneal train CONFIG --init-from DIR`",
			}
		}
	}
	cfg, err := runDir(dir).read(overrides)
	if err != nil {
		return nil, err
	}
	return cfg, takeTeacher(cfg)
}

// Config reads the configuration of the run in dir.
func Config(dir string) (*config.Config, error) { return runDir(dir).load() }

// ResumeConfig is Config for a run that is to be resumed, with some values of parallel replaced. Its remarks say what
// changes with another mesh of ranks. A run that holds only weights is refused.
func ResumeConfig(dir string, overrides []string) (*config.Config, error) {
	if _, err := runDir(dir).load(); err != nil {
		return nil, err
	}
	for _, o := range overrides {
		if key, _, _ := strings.Cut(o, "="); !slices.Contains(movable, key) {
			return nil, config.Problem{
				Key: key, At: "command line: " + o, Message: fmt.Sprintf("%s cannot change as a run is resumed", key),
				Try: fmt.Sprintf("one of %s; to change other values, edit %s",
					strings.Join(movable, ", "), runDir(dir).config()),
			}
		}
	}
	cfg, err := runDir(dir).moved(overrides)
	if err != nil {
		return nil, err
	}
	if err := takeTeacher(cfg); err != nil {
		return nil, err
	}
	var last state
	if _, err := checkpoint.LoadState(runDir(dir).checkpoints(), &last); err == nil && last.Config != nil {
		remarkMove(last.Config, cfg)
	}
	return cfg, refuseWeights(runDir(dir))
}

// moved is load for a resumed run. If the overrides remove an axis of the mesh, the key that says how ranks share this
// axis is reset to its default, because it would be refused without the axis.
func (d runDir) moved(overrides []string) (*config.Config, error) {
	given := map[string]string{}
	for _, o := range overrides {
		key, value, _ := strings.Cut(o, "=")
		given[key] = strings.TrimSpace(value)
	}
	list, usual := slices.Clone(overrides), config.Default().Parallel
	for _, axis := range []struct{ key, how, value string }{
		{"parallel.tensor", "parallel.sequence", fmt.Sprint(usual.Sequence)},
		{"parallel.context", "parallel.attention", usual.Attention},
		{"parallel.pipeline", "parallel.schedule", usual.Schedule},
	} {
		if _, says := given[axis.how]; given[axis.key] == "1" && !says {
			list = append(list, axis.how+"="+axis.value)
		}
	}
	return d.load(list...)
}

// load reads the configuration of an existing run, with some values replaced.
func (d runDir) load(overrides ...string) (*config.Config, error) {
	switch _, err := os.Stat(d.config()); {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("cannot read the run: %w", err)
	case occupied(string(d)):
		return nil, fmt.Errorf("%s %w\n  `anneal ls DIR` lists the runs below a directory", d, ErrNoRun)
	default:
		return nil, fmt.Errorf("%s %w\n  start one with `anneal train CONFIG --out %s`", d, ErrNoRun, d.word())
	}
	return d.read(overrides)
}

// occupied reports whether something at a path prevents a run from being made there.
func occupied(path string) bool {
	list, err := os.ReadDir(path)
	return len(list) > 0 || errors.Is(err, syscall.ENOTDIR)
}

// read reads the configuration with some values replaced, and finds data that was moved with the run.
func (d runDir) read(overrides []string) (*config.Config, error) {
	cfg, err := config.Sources{File: d.config(), Overrides: overrides, Started: true}.Load()
	if wrong := (*config.Error)(nil); errors.As(err, &wrong) {
		for i, p := range wrong.Problems {
			if strings.HasPrefix(p.Message, "unknown key ") && strings.HasPrefix(p.At, d.config()) {
				wrong.Problems[i].Try += ", or the version of anneal that made the run if nobody has edited this file"
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return cfg, d.findData(cfg)
}
